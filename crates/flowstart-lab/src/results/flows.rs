//! A row per measured flow and repetition: `flows.csv` and `flows.parquet`.

use std::io::{Read, Write};
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde::ser::{Serialize, SerializeSeq, Serializer};

use super::metric::Value;
use super::row::{METRICS, Metric};
pub use super::row::{Row, STATUS};
use crate::study::plan::Plan;

/// The columns of an experiment beyond those of all experiments.
#[derive(Clone, Debug, Default)]
pub struct ExtraColumns(Vec<&'static Metric>);

impl ExtraColumns {
    /// The columns of a plan.
    pub fn of(plan: &Plan) -> Self {
        let cells = plan.cells();
        Self::in_groups_that(|columns| cells.iter().any(|cell| columns[0].group.is_of(plan, cell)))
    }

    /// The columns with a value in any of these rows.
    fn in_rows(rows: &[Row]) -> Self {
        Self::in_groups_that(|columns| rows.iter().any(|row| columns.iter().any(|one| one.number(row).is_some())))
    }

    /// The columns of groups for which this is true.
    fn in_groups_that(wanted: impl Fn(&[Metric]) -> bool) -> Self {
        let groups = METRICS.chunk_by(|a, b| a.group == b.group);
        Self(groups.filter(|columns| !columns[0].group.is_of_all() && wanted(columns)).flatten().collect())
    }
}

/// The columns of rows with these in addition.
fn columns(extra: &ExtraColumns) -> impl Iterator<Item = &'static Metric> {
    METRICS.iter().filter(|column| column.group.is_of_all()).chain(extra.0.clone())
}

/// The names of the columns of rows with these in addition.
pub fn header(extra: &ExtraColumns) -> Vec<String> {
    columns(extra).map(|column| column.name.to_owned()).collect()
}

/// Whether these are the columns of all experiments and some of `extra`, each once.
pub fn is_header_of(names: &[String], extra: &ExtraColumns) -> bool {
    let base = header(&ExtraColumns::default());
    let Some(more) = names.strip_prefix(base.as_slice()) else { return false };
    let place = |name: &String| extra.0.iter().position(|column| column.name == name);
    let places: Option<Vec<usize>> = more.iter().map(place).collect();
    places.is_some_and(|places| places.windows(2).all(|pair| pair[0] < pair[1]))
}

/// A row as a record of these columns.
struct Record<'a> {
    row: &'a Row,
    columns: &'a [&'static Metric],
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_seq(Some(self.columns.len()))?;
        for column in self.columns {
            match column.value(self.row) {
                Value::Text(text) => record.serialize_element(&text)?,
                Value::Count(count) => record.serialize_element(&count)?,
                // Whole numbers are `5.0` in the columns of all experiments and `5` in the others.
                Value::Number(number) if column.group.is_of_all() => record.serialize_element(&number)?,
                Value::Number(number) => record.serialize_element(&number.map(|number| number.to_string()))?,
            }
        }
        record.end()
    }
}

/// Writes rows as CSV.
pub fn write_csv(rows: &[Row], out: impl Write) -> csv::Result<()> {
    write_csv_with(rows, out, &ExtraColumns::in_rows(rows))
}

/// Writes rows as CSV with these columns in addition.
pub fn write_csv_with(rows: &[Row], out: impl Write, extra: &ExtraColumns) -> csv::Result<()> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    let columns: Vec<&Metric> = columns(extra).collect();
    if !rows.is_empty() {
        writer.write_record(header(extra))?;
    }
    for row in rows {
        writer.serialize(Record { row, columns: &columns })?;
    }
    writer.flush()?;
    Ok(())
}

/// Reads rows that [`write_csv`] wrote.
///
/// # Errors
///
/// The line that is not a row, and the reason.
pub fn read_csv(input: impl Read) -> Result<Vec<Row>, String> {
    let mut reader = csv::Reader::from_reader(input);
    let rows = reader.deserialize().enumerate();
    rows.map(|(index, row)| row.map_err(|error| format!("line {}: {error}", index + 2))).collect()
}

/// Rows as columns in memory, in the form of Arrow.
///
/// # Errors
///
/// The columns do not fit together, which rows of one program do.
pub fn batch(rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let (mut fields, mut arrays) = (Vec::new(), Vec::new());
    for column in columns(&ExtraColumns::in_rows(rows)) {
        let (kind, array) = array(column, rows);
        fields.push(Field::new(column.name, kind, true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// Writes rows as Parquet.
pub fn write_parquet(rows: &[Row], out: impl Write + Send) -> Result<(), parquet::errors::ParquetError> {
    let batch = batch(rows)?;
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

/// A column of these rows, and its type.
fn array(column: &Metric, rows: &[Row]) -> (DataType, ArrayRef) {
    let values = rows.iter().map(|row| column.value(row));
    match column.value(&Row::default()) {
        Value::Text(_) => {
            let texts = values.map(|value| if let Value::Text(text) = value { text } else { None });
            (DataType::Utf8, Arc::new(texts.collect::<StringArray>()))
        }
        Value::Count(_) => {
            let counts = values.map(|value| if let Value::Count(count) = value { count } else { None });
            (DataType::UInt64, Arc::new(counts.collect::<UInt64Array>()))
        }
        Value::Number(_) => {
            let numbers = rows.iter().map(|row| column.number(row));
            (DataType::Float64, Arc::new(numbers.collect::<Float64Array>()))
        }
    }
}
