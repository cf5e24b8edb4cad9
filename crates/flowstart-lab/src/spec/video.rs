//! Adaptive video: `video:chunk=4s,count=30,buffer=30s,rule=bba-0`.
//!
//! The ladder is the one that Netflix used for all titles until 2015 ("Per-Title Encode Optimization", Netflix
//! Technology Blog, December 2015). Chunks of 4 s are those of Huang and others, SIGCOMM 2014; the buffer is that of
//! dash.js at the highest rate (`bufferTimeAtTopQuality`). What players do is described where they run
//! ([`flowstart_sim::traffic::video`]).

use flowstart_core::time::Duration;
use flowstart_core::units::Rate;
use flowstart_sim::traffic::video::{Ladder, MOST_RATES, Rule, Video};

use super::form::Key;
use super::size::LARGEST;
use super::{InputError, Spec};

/// The name of this application.
pub const VIDEO: &str = "video";
/// Rates of the ladder in kbit/s unless told otherwise.
const NETFLIX: [u64; 10] = [235, 375, 560, 750, 1050, 1750, 2350, 3000, 4300, 5800];
/// Rates that a ladder may have.
const RATES: std::ops::RangeInclusive<Rate> = Rate::from_bits_per_sec(1_000)..=Rate::from_bits_per_sec(1_000_000_000);
/// Parts of the buffer that are reservoir, and from which the highest rate is requested: 90 and 216 of 240 s.
const RESERVOIR: f64 = 0.375;
const UPPER: f64 = 0.9;

/// Its keys.
pub(super) const KEYS: &[Key] = &[
    Key::new("ladder", "rates, as in 1mbit/3mbit", "the offered rates, ascending, up to 16", "235kbit/.../5.8mbit")
        .such_as("video:ladder=1mbit/2.5mbit/5mbit"),
    Key::new("chunk", "100ms to 60s", "playing time of a chunk", "4s").such_as("video:chunk=2s"),
    Key::new("count", "1 to 10000", "number of chunks", "30").such_as("video:count=15"),
    Key::new("buffer", "2 chunks to 1000s", "most video that the player buffers", "30s").such_as("video:buffer=60s"),
    Key::new("start", "above 0s, up to buffer less a chunk", "buffered video from which it plays", "a chunk")
        .such_as("video:start=8s"),
    Key::new("rule", "bba-0 or throughput", "what decides on the rate of the next chunk", "bba-0")
        .such_as("video:rule=throughput"),
    Key::new(
        "reservoir",
        "0s to less than upper",
        "bba-0: the lowest rate is for up to this much buffered video",
        "37.5 % of buffer, or half of upper",
    )
    .such_as("video:reservoir=5s"),
    Key::new(
        "upper",
        "above reservoir, up to buffer less a chunk",
        "bba-0: the highest rate is for this much and more",
        "90 % of buffer, or room for a chunk",
    )
    .such_as("video:upper=20s"),
];

#[derive(Clone, Copy)]
enum RuleName {
    Buffer,
    Throughput,
}

/// Reads the keys of a video of up to this many chunks.
pub(super) fn read(spec: &mut Spec<'_>, most_chunks: u32) -> Result<Video, InputError> {
    let ms = Duration::from_millis;
    let rates: Vec<Rate> = spec.list("ladder")?;
    let chunk = spec.within("chunk", ms(100)..=ms(60_000))?.unwrap_or(ms(4000));
    let count = spec.within("count", 1..=most_chunks)?.unwrap_or(30);
    let buffer = spec.within("buffer", chunk * 2..=ms(1_000_000))?.unwrap_or(ms(30_000).max(chunk * 2));
    // Chunks are requested while the buffer has room for one: a player that waited for more than this would pause
    // before it plays, and no rate is ever chosen at a fuller buffer.
    let room = buffer.saturating_sub(chunk);
    let start = spec.within("start", Duration::from_nanos(1)..=room)?.unwrap_or(chunk);
    let rule = spec.one_of("rule", &[("bba-0", RuleName::Buffer), ("throughput", RuleName::Throughput)])?;
    let reservoir = spec.within("reservoir", Duration::ZERO..=room)?;
    let upper = spec.within("upper", Duration::ZERO..=room)?;
    let rule = match rule.unwrap_or(RuleName::Buffer) {
        RuleName::Throughput if reservoir.or(upper).is_some() => {
            return Err(spec.refused("reservoir and upper are for rule=bba-0"));
        }
        RuleName::Throughput => Rule::Throughput,
        RuleName::Buffer => {
            let upper = upper.unwrap_or(buffer.scale(UPPER).min(room));
            let reservoir = reservoir.unwrap_or(buffer.scale(RESERVOIR).min(upper / 2));
            if reservoir >= upper {
                return Err(spec.refused(format_args!("reservoir is {reservoir}; allowed is less than upper, {upper}")));
            }
            Rule::Buffer { reservoir, upper }
        }
    };
    let default = || NETFLIX.iter().map(|rate| Rate::from_bits_per_sec(rate * 1000)).collect();
    let rates = if rates.is_empty() { default() } else { rates };
    if let Some(rate) = rates.iter().find(|rate| !RATES.contains(rate)) {
        let allowed = format!("allowed is {} to {}", RATES.start(), RATES.end());
        return Err(spec.refused(format_args!("ladder has {rate}; {allowed}")));
    }
    let Some(ladder) = Ladder::new(&rates) else {
        let allowed = format!("allowed are up to {MOST_RATES} rates, each above the one before");
        return Err(spec.refused_value("ladder", allowed));
    };
    let video = Video { ladder, chunk, count, buffer, start, rule };
    match video.most_bytes() {
        most if most > LARGEST => Err(spec.refused(format_args!("up to {most}; allowed are 1000GB in all"))),
        _ => Ok(video),
    }
}

#[cfg(test)]
mod tests {
    use super::super::application::Objects;
    use super::*;

    fn video(text: &str) -> Result<Video, String> {
        match Objects::parse("--application", text).map_err(|error| error.to_string())?.value {
            Some(Objects::Video(video)) => Ok(video),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_defaults_are_a_published_ladder_and_the_papers_parts_of_the_buffer() {
        let plain = video("video").unwrap();
        assert_eq!((plain.ladder.rates().len(), plain.ladder.highest()), (10, Rate::from_bits_per_sec(5_800_000)));
        assert_eq!((plain.count, plain.start), (30, Duration::from_millis(4000)));
        // 37.5 % of 30 s; 90 % are 27 s, but a chunk has room only up to 26 s.
        let (reservoir, upper) = (Duration::from_millis(11_250), Duration::from_millis(26_000));
        assert_eq!(plain.rule, Rule::Buffer { reservoir, upper });
        let paper = video("video:buffer=240s").unwrap().rule;
        let (reservoir, upper) = (Duration::from_millis(90_000), Duration::from_millis(216_000));
        assert_eq!(paper, Rule::Buffer { reservoir, upper });
        let own = video("video:ladder=1mbit/2.5mbit,chunk=2s,start=6s,rule=throughput").unwrap();
        assert_eq!((own.rule, own.ladder.rates().len(), own.start), (Rule::Throughput, 2, Duration::from_millis(6000)));
        // All may be as much as leaves room for a chunk.
        let (reservoir, upper) = (Duration::from_millis(25_000), Duration::from_millis(26_000));
        let full = video("video:start=26s,reservoir=25s,upper=26s").unwrap();
        assert_eq!((full.start, full.rule), (upper, Rule::Buffer { reservoir, upper }));
        // 5.8 Mbit/s for 4 s are 2.9 MB.
        assert_eq!(plain.most_bytes().get(), 30 * 2_900_000);
    }

    #[test]
    fn wrong_videos_say_what_is_allowed() {
        let error = |keys: &str| video(&format!("video:{keys}")).unwrap_err();
        for (keys, allowed) in [
            ("ladder=0bit", "1kbit to 1gbit"),
            ("ladder=2mbit/1mbit", "each above the one before"),
            ("ladder=1mbit/1mbit", "each above the one before"),
            ("ladder=1mbit/x", "ladder"),
            ("chunk=0s", "100ms to 60s"),
            ("count=0", "1 to 10000"),
            ("count=4000000000", "1 to 10000"),
            ("buffer=7s", "8s to 1000s"),
            ("start=0s", "start is"),
            ("start=27s", "start is 27s; allowed is 1ns to 26s"),
            ("chunk=2s,start=29s", "start is 29s; allowed is 1ns to 28s"),
            ("upper=27s", "upper is 27s; allowed is 0s to 26s"),
            ("upper=30s,reservoir=29s", "reservoir is 29s; allowed is 0s to 26s"),
            ("buffer=240s,upper=237s", "upper is 237s; allowed is 0s to 236s"),
            ("rule=bola", "bba-0 and throughput"),
            ("rule=throughput,reservoir=5s", "are for rule=bba-0"),
            ("reservoir=20s,upper=10s", "less than upper, 10s"),
            ("size=1MB", "`size` is not known here"),
        ] {
            assert!(error(keys).contains(allowed), "{keys}: {}", error(keys));
        }
        let many: Vec<String> = (1..=17).map(|rate| format!("{rate}mbit")).collect();
        assert!(error(&format!("ladder={}", many.join("/"))).contains("up to 16 rates"));
        assert!(error("ladder=1gbit,chunk=60s,count=10000").contains("1000GB in all"));
    }
}
