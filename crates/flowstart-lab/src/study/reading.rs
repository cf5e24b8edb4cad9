//! The meaning of a scenario's schemes, congestion avoidance and competitors on each of its transports, and what a
//! transport cannot run.

use flowstart_core::avoidance::AvoidanceConfig;
use flowstart_core::controller::ControllerConfig;
use flowstart_core::needs::Needs;
use flowstart_core::startup::{CustomStartup, StartupConfig};

use super::entries::each;
use super::scenario::Scenario;
use crate::spec::competitor::Competitor;
use crate::spec::link::Link;
use crate::spec::transport::Transport;
use crate::spec::workload::Workload;
use crate::spec::{InputError, STACK, Written, host_avoidance, measured_scheme};

/// What depends on a transport, as it completes it.
pub(super) struct Reading {
    pub(super) schemes: Vec<Written<StartupConfig>>,
    /// Congestion avoidance that each scheme names.
    pub(super) scheme_avoidances: Vec<Option<Written<AvoidanceConfig>>>,
    /// Connections of a transfer with each scheme, the same on every transport.
    pub(super) connections: Vec<u32>,
    pub(super) avoidances: Vec<Written<AvoidanceConfig>>,
    pub(super) competitors: Vec<Written<Competitor>>,
}

impl Reading {
    /// Every scheme with every congestion avoidance that it runs with.
    fn pairs<'a>(&'a self, transport: &'a Transport) -> Vec<(&'a Written<StartupConfig>, &'a AvoidanceConfig)> {
        let chosen = || self.avoidances.iter().map(|chosen| &chosen.value);
        let mut pairs = Vec::new();
        for (scheme, own) in self.schemes.iter().zip(&self.scheme_avoidances) {
            match own {
                Some(own) => pairs.push((scheme, &own.value)),
                None if self.avoidances.is_empty() => pairs.push((scheme, &transport.profile.avoidance)),
                None => pairs.extend(chosen().map(|avoidance| (scheme, avoidance))),
            }
        }
        pairs
    }
}

impl Scenario {
    /// The meaning on each of these transports.
    ///
    /// # Errors
    ///
    /// What cannot be read, or run. The transport is named unless all transports have the same problem.
    pub(super) fn readings(
        &self,
        transports: &[Transport],
        own: &[CustomStartup],
        links: &[Link],
        sizes: &[Written<Workload>],
    ) -> Result<Vec<Reading>, InputError> {
        let mut readings = Vec::new();
        let mut errors = Vec::new();
        for transport in transports {
            match self.reading(transport, own, links, sizes) {
                Ok(reading) => readings.push(reading),
                Err(error) => errors.push((transport, error)),
            }
        }
        let Some((transport, error)) = errors.first() else { return Ok(readings) };
        let is_of_all = errors.len() == transports.len() && errors.iter().all(|(_, other)| other == error);
        let problem = match is_of_all {
            true => error.problem.clone(),
            false => format!("with transport {}: {}", transport.text, error.problem),
        };
        Err(InputError::new(&error.field, &error.value, problem))
    }

    fn reading(
        &self,
        transport: &Transport,
        own: &[CustomStartup],
        links: &[Link],
        sizes: &[Written<Workload>],
    ) -> Result<Reading, InputError> {
        let profile = &transport.profile;
        let named = each("scheme", &self.scheme, |text| measured_scheme("scheme", text, transport, own))?;
        let connections: Vec<u32> = named.iter().map(|measured| measured.connections).collect();
        let pairs = named.into_iter().map(|measured| (measured.startup, measured.avoidance));
        let (schemes, scheme_avoidances): (Vec<_>, Vec<_>) = pairs.unzip();
        self.check_choice(transport, &schemes, &scheme_avoidances)?;
        let avoidances = match &*self.avoidance {
            [] => Vec::new(),
            chosen => each("avoidance", chosen, |text| host_avoidance("avoidance", text, profile))?,
        };
        let competitors = each("competitor", &self.competitor, |text| Competitor::parse("competitor", text, profile))?;
        let reading = Reading { schemes, scheme_avoidances, connections, avoidances, competitors };
        let pairs = reading.pairs(transport);
        for (scheme, avoidance) in &pairs {
            ControllerConfig::validate_pair(&scheme.value, avoidance)
                .map_err(|error| InputError::new("scheme", &scheme.text, error.to_string()))?;
        }
        let theirs = reading.competitors.iter().filter_map(|competitor| competitor.value.avoidance());
        let mut all = pairs.iter().map(|(_, avoidance)| *avoidance).chain(theirs);
        if let Some(avoidance) = all.find(|avoidance| avoidance.needs().contains(Needs::CONGESTION_HEADER))
            && let Some(link) = links.iter().find(|link| !link.xcp)
        {
            let name = avoidance.name();
            let problem = format!("avoidance {name} needs routers that give feedback; allowed are links with xcp=on");
            return Err(InputError::new("link", &link.text, problem));
        }
        if let Some(stack) = &transport.stack {
            for (scheme, avoidance) in &pairs {
                stack
                    .check(profile, &scheme.value, avoidance)
                    .map_err(|problem| InputError::new("scheme", &scheme.text, problem))?;
            }
            if let Some(size) = sizes.iter().find(|size| size.value.objects().is_some()) {
                let problem = "each flow of the real stack carries one transfer; allowed is transfer";
                return Err(InputError::new("application", &size.text, problem));
            }
        }
        Ok(reading)
    }

    /// Refuses choices of congestion avoidance beside schemes that have their own.
    fn check_choice(
        &self,
        transport: &Transport,
        schemes: &[Written<StartupConfig>],
        own: &[Option<Written<AvoidanceConfig>>],
    ) -> Result<(), InputError> {
        let Some(chosen) = self.avoidance.first() else { return Ok(()) };
        if schemes.iter().any(|scheme| scheme.text == STACK) {
            let name = transport.profile.avoidance.name();
            let problem = format!(
                "the scheme {STACK} has the transport's own, {name}; allowed is none beside it, or one for each other \
                 scheme, as in slow-start:avoidance={name}"
            );
            return Err(InputError::new("avoidance", chosen, problem));
        }
        match schemes.iter().zip(own).find(|(_, own)| own.is_some()) {
            Some((scheme, _)) if self.avoidance.len() > 1 => {
                let problem = "names its own congestion avoidance, and several are compared; allowed are schemes \
                               without one, or no more than one for the others";
                Err(InputError::new("scheme", &scheme.text, problem))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
