//! Tables in the form of Arrow, through its `PyCapsule` interface: other libraries read them without copies.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};
use serde_json::{Map, Value};

/// Rows with named columns.
#[pyclass(frozen, module = "flowstart")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn of(batch: RecordBatch) -> Self {
        Self { schema: batch.schema(), batches: vec![batch] }
    }

    pub(crate) fn of_batches(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }

    /// Objects as rows. An object inside of one becomes columns with its name before theirs, and an interval two
    /// columns, unless `nested`; what still is no plain value is JSON.
    ///
    /// # Errors
    ///
    /// The columns do not fit together.
    pub(crate) fn of_objects(objects: &[Value], nested: bool) -> PyResult<Self> {
        let rows: Vec<Map<String, Value>> = objects.iter().map(|object| flat(object, nested)).collect();
        let mut names: Vec<&String> = Vec::new();
        for name in rows.iter().flat_map(|row| row.keys()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let columns: Vec<(Field, ArrayRef)> = names.iter().map(|name| column(name, &rows)).collect();
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
        if fields.is_empty() {
            return Ok(Self { schema: Arc::new(Schema::empty()), batches: Vec::new() });
        }
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays);
        batch.map(Self::of).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }
}

/// An object without objects inside.
fn flat(object: &Value, nested: bool) -> Map<String, Value> {
    let mut row = Map::new();
    if let Some(entries) = object.as_object() {
        entries.iter().for_each(|(name, value)| insert(&mut row, name.clone(), value, nested));
    }
    row
}

fn insert(row: &mut Map<String, Value>, name: String, value: &Value, nested: bool) {
    match value {
        Value::Object(entries) if !nested => {
            entries.iter().for_each(|(inner, value)| insert(row, format!("{name}_{inner}"), value, nested));
        }
        Value::Array(ends) if !nested && ends.len() == 2 && ends.iter().all(Value::is_number) => {
            row.insert(format!("{name}_low"), ends[0].clone());
            row.insert(format!("{name}_high"), ends[1].clone());
        }
        Value::Object(_) | Value::Array(_) => {
            row.insert(name, Value::String(value.to_string()));
        }
        plain => {
            row.insert(name, plain.clone());
        }
    }
}

/// A column of these rows. Its type is the one that holds all of its values.
fn column(name: &str, rows: &[Map<String, Value>]) -> (Field, ArrayRef) {
    let values: Vec<&Value> = rows.iter().map(|row| row.get(name).unwrap_or(&Value::Null)).collect();
    let all = |is: fn(&Value) -> bool| values.iter().all(|value| value.is_null() || is(value));
    let (kind, array): (DataType, ArrayRef) = if all(Value::is_null) {
        (DataType::Float64, Arc::new(Float64Array::new_null(values.len())))
    } else if all(Value::is_boolean) {
        (DataType::Boolean, Arc::new(values.iter().map(|value| value.as_bool()).collect::<BooleanArray>()))
    } else if all(Value::is_u64) {
        (DataType::UInt64, Arc::new(values.iter().map(|value| value.as_u64()).collect::<UInt64Array>()))
    } else if all(Value::is_number) {
        (DataType::Float64, Arc::new(values.iter().map(|value| value.as_f64()).collect::<Float64Array>()))
    } else {
        let text = |value: &&Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        (DataType::Utf8, Arc::new(values.iter().map(text).collect::<StringArray>()))
    };
    (Field::new(name, kind, true), array)
}

/// The value in a place of a column.
fn value<'py>(py: Python<'py>, column: &ArrayRef, place: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(place) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::Boolean => column.as_boolean().value(place).into_pyobject(py)?.to_owned().into_any(),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(place).into_pyobject(py)?.into_any(),
        DataType::Float64 => column.as_primitive::<Float64Type>().value(place).into_pyobject(py)?.into_any(),
        _ => column.as_string::<i32>().value(place).into_pyobject(py)?.into_any(),
    })
}

#[pymethods]
impl Table {
    /// The table as a stream of Arrow, which Polars, pandas and pyarrow read. The types are those of the table,
    /// whatever is asked for, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    pub(crate) fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new(self.batches.clone().into_iter().map(Ok), self.schema.clone());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The rows as dictionaries, for those who have no library for Arrow.
    fn to_dicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        for batch in &self.batches {
            for place in 0..batch.num_rows() {
                let row = PyDict::new(py);
                for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                    row.set_item(field.name(), value(py, column, place)?)?;
                }
                rows.append(row)?;
            }
        }
        Ok(rows)
    }

    fn __repr__(&self) -> String {
        format!("<flowstart.Table: {} rows; {}>", self.__len__(), self.columns().join(", "))
    }
}
