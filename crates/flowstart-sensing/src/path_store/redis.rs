//! A path store on a Redis server, which several hosts share.
//!
//! Reference: RFC 9040, section 6; Redis commands `ZADD`, `ZRANGE`, `ZREMRANGEBYSCORE`, `ZREMRANGEBYRANK`, `INCR` and
//! `EXPIRE`. Each prefix is a sorted set whose scores are the times of its observations, so hosts that put at the same
//! time do not overwrite each other's data. Every call ends within [`Config::bound`], whatever the server does: a
//! thread of the store talks to the server, and callers wait for the thread no longer than that. Answers are bounded
//! in bytes and in time (`bounded_connection.rs`).
//!
//! Differences from the reference: those of [`path_store`](super). The server also forgets a prefix by its own clock,
//! one lifetime after the last put, so nothing stays after all hosts are gone.
//!
//! Status: the contract of all stores, against `redis-server` where it is installed; a server that is closed, silent,
//! slow or hostile.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Instant;

use flowstart_core::time::Duration;
use redis::{Client, Cmd, RedisError, RedisResult};
use serde::{Deserialize, Serialize};

use super::bounded_connection::BoundedConnection;
use super::record::{self, DecodeError};
use super::{Forgotten, Observation, PathRecord, PathStore, Prefix, Retention, StoreError, UnixTime};

/// Calls that may wait for the thread; another one is refused at once.
const WAITING: usize = 64;
/// Keys that `expire` asks for at a time. Other calls wait for one such step, not for all.
const KEYS_AT_A_TIME: usize = 100;
/// The longest that the thread goes through keys. A server may name ever more.
const LONGEST_SWEEP: std::time::Duration = std::time::Duration::from_secs(60);

/// Where the server is and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The server, `redis://[user:password@]host[:port][/database]`. Default: this host.
    pub server: String,
    /// The longest that a call takes, connecting included. Default 20 ms: chosen, because the answer is needed before
    /// the handshake ends, and a server for several hosts is near them.
    pub bound: Duration,
    /// What all keys begin with. Default `flowstart:`.
    pub namespace: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { server: "redis://127.0.0.1/".into(), bound: Duration::from_millis(20), namespace: "flowstart:".into() }
    }
}

/// A request to the thread. It answers on `answer`, if the caller still waits.
struct Call {
    work: Work,
    deadline: Instant,
    answer: SyncSender<Result<Answer, StoreError>>,
}

enum Work {
    Get(Prefix),
    Put(Prefix, Observation),
    Expire(UnixTime),
}

enum Answer {
    Record(PathRecord),
    Saved,
    Forgotten(u64),
}

/// A store on a server.
#[derive(Debug)]
pub struct RedisStore {
    calls: SyncSender<Call>,
    bound: std::time::Duration,
    retention: Retention,
}

impl RedisStore {
    /// A store on the server. It connects at the first call, so only a `server` that cannot be understood fails here.
    pub fn new(config: Config, retention: Retention) -> Result<Self, StoreError> {
        let client = Client::open(config.server.as_str())?;
        let bound = std::time::Duration::from_nanos(config.bound.as_nanos().max(1));
        let (calls, received) = sync_channel(WAITING);
        let dialogue = Dialogue { client, namespace: config.namespace, bound, retention, connection: None };
        std::thread::Builder::new()
            .name("path-store".into())
            .spawn(move || dialogue.serve(&received))
            .map_err(RedisError::from)?;
        Ok(Self { calls, bound, retention })
    }

    fn call(&self, work: Work) -> Result<Answer, StoreError> {
        let late = || StoreError::Late(Duration::from_nanos(self.bound.as_nanos() as u64));
        let (answer, answered) = sync_channel(1);
        let deadline = Instant::now() + self.bound;
        self.calls.try_send(Call { work, deadline, answer }).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Busy,
            TrySendError::Disconnected(_) => StoreError::Poisoned,
        })?;
        answered.recv_timeout(self.bound).unwrap_or_else(|error| match error {
            RecvTimeoutError::Timeout => Err(late()),
            RecvTimeoutError::Disconnected => Err(StoreError::Poisoned),
        })
    }
}

/// The thread's side.
struct Dialogue {
    client: Client,
    namespace: String,
    bound: std::time::Duration,
    retention: Retention,
    connection: Option<BoundedConnection>,
}

impl Dialogue {
    fn serve(mut self, calls: &Receiver<Call>) {
        for call in calls {
            self.answer(&call, calls);
        }
    }

    /// Answers a call, and during one that takes long those that come meanwhile.
    fn answer(&mut self, call: &Call, calls: &Receiver<Call>) {
        // The caller is gone, and the next one should not wait for an answer without a reader.
        if call.deadline <= Instant::now() && matches!(call.work, Work::Get(_)) {
            return;
        }
        let answer = match call.work {
            Work::Get(prefix) => self.get(prefix).map(Answer::Record),
            Work::Put(prefix, observation) => self.put(prefix, &observation).map(|()| Answer::Saved),
            Work::Expire(now) => self.expire(now, calls).map(Answer::Forgotten),
        };
        self.tell(call, answer);
    }

    fn tell(&mut self, call: &Call, answer: Result<Answer, StoreError>) {
        if matches!(answer, Err(StoreError::Server(_))) {
            // Half an answer may be on its way; a new connection is the only way to be sure.
            self.connection = None;
        }
        let _ = call.answer.send(answer);
    }

    fn connection(&mut self) -> RedisResult<&mut BoundedConnection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => BoundedConnection::open(&self.client, self.bound)?,
        };
        Ok(self.connection.insert(connection))
    }

    /// The keys of the observations of a prefix and of their number.
    fn keys(&self, prefix: Prefix) -> (String, String) {
        (format!("{}path:{prefix}", self.namespace), format!("{}samples:{prefix}", self.namespace))
    }

    fn get(&mut self, prefix: Prefix) -> Result<PathRecord, StoreError> {
        let (path, count) = self.keys(prefix);
        let connection = self.connection()?;
        let (members, samples): (Vec<Vec<u8>>, Option<u64>) =
            redis::pipe().zrange(path, 0, -1).get(count).query(connection)?;
        let mut observations = Vec::with_capacity(members.len());
        for member in members {
            let one =
                decode_member(&member).map_err(|cause| StoreError::Record { prefix: prefix.to_string(), cause })?;
            observations.push(one);
        }
        observations.sort_by_key(|one| one.at);
        let samples = samples.unwrap_or(0).max(observations.len() as u64);
        Ok(PathRecord { observations, samples })
    }

    fn put(&mut self, prefix: Prefix, observation: &Observation) -> Result<(), StoreError> {
        let (path, count) = self.keys(prefix);
        let retention = self.retention;
        let life = lifetime(&retention).max(1);
        let connection = self.connection()?;
        // The number makes members differ whose observations are equal.
        let (number,): (u64,) =
            redis::pipe().atomic().incr(&count, 1).expire(&count, life).ignore().query(connection)?;
        let at = observation.at.as_secs();
        let mut member = vec![record::VERSION];
        member.extend_from_slice(&number.to_be_bytes());
        member.extend_from_slice(&record::encode_observation(observation));
        redis::pipe()
            .atomic()
            .zadd(&path, member, at)
            .zrembyscore(&path, "-inf", expired(observation.at, &retention))
            .zrembyscore(&path, implausible(observation.at, &retention), "+inf")
            .zremrangebyrank(&path, 0, -1 - isize::try_from(retention.observations.max(1)).unwrap_or(1))
            .expire(&path, life)
            .exec(connection)?;
        Ok(())
    }

    /// Forgets what is expired in all keys of the namespace, and answers `calls` between two steps.
    fn expire(&mut self, now: UnixTime, calls: &Receiver<Call>) -> Result<u64, StoreError> {
        let (mut cursor, mut forgotten, began) = (0, 0, Instant::now());
        loop {
            let (next, more) = self.expire_some(now, cursor)?;
            (cursor, forgotten) = (next, forgotten + more);
            if cursor == 0 || began.elapsed() > LONGEST_SWEEP {
                return Ok(forgotten);
            }
            while let Ok(call) = calls.try_recv() {
                match call.work {
                    // This one goes on.
                    Work::Expire(_) => self.tell(&call, Ok(Answer::Forgotten(0))),
                    Work::Get(_) | Work::Put(..) => self.answer(&call, calls),
                }
            }
        }
    }

    /// Forgets what is expired in the keys of a step. Returns where the next one begins, and the prefixes of which
    /// nothing is left.
    fn expire_some(&mut self, now: UnixTime, cursor: u64) -> Result<(u64, u64), StoreError> {
        let pattern = format!("{}path:*", escaped(&self.namespace));
        let (oldest, latest) = (expired(now, &self.retention), implausible(now, &self.retention));
        let skip = self.keys(Prefix::from(ipnet::IpNet::default())).0.len() - "0.0.0.0/0".len();
        let counted = format!("{}samples:", self.namespace);
        let connection = self.connection()?;
        let mut scan = Cmd::new();
        scan.arg("SCAN").arg(cursor).arg("MATCH").arg(&pattern).arg("COUNT").arg(KEYS_AT_A_TIME);
        let (next, keys): (u64, Vec<String>) = scan.query(connection)?;
        if keys.is_empty() {
            return Ok((next, 0));
        }
        let mut removal = redis::pipe();
        removal.atomic();
        for key in &keys {
            removal.zrembyscore(key, "-inf", oldest).zrembyscore(key, latest, "+inf").zcard(key);
        }
        let removed: Vec<u64> = removal.query(connection)?;
        let (removed, _) = removed.as_chunks::<3>();
        let is_empty = |(_, counts): &(&String, &[u64; 3])| counts[0] + counts[1] > 0 && counts[2] == 0;
        let empty: Vec<String> = keys
            .iter()
            .zip(removed)
            .filter(is_empty)
            .map(|(key, _)| format!("{counted}{}", key.get(skip..).unwrap_or_default()))
            .collect();
        if !empty.is_empty() {
            redis::cmd("DEL").arg(&empty).exec(connection)?;
        }
        Ok((next, empty.len() as u64))
    }
}

/// The latest time that is expired at `now`. Before the epoch when nothing is.
fn expired(now: UnixTime, retention: &Retention) -> i64 {
    whole(now.as_secs()).saturating_sub(lifetime(retention))
}

/// The earliest time too far ahead of `now`.
fn implausible(now: UnixTime, retention: &Retention) -> i64 {
    whole(now.as_secs()).saturating_add(lifetime(retention))
}

/// The lifetime in whole seconds, rounded up.
fn lifetime(retention: &Retention) -> i64 {
    whole(retention.lifetime.as_nanos().div_ceil(1_000_000_000))
}

fn whole(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

/// A namespace as a pattern that matches itself only.
fn escaped(namespace: &str) -> String {
    namespace.chars().flat_map(|c| ("*?[]\\^".contains(c).then_some('\\')).into_iter().chain([c])).collect()
}

/// The observation in a member of a sorted set: version, number, observation.
fn decode_member(member: &[u8]) -> Result<Observation, DecodeError> {
    let (version, rest) = member.split_first().ok_or(DecodeError::Empty)?;
    if *version != record::VERSION {
        return Err(DecodeError::Version(*version));
    }
    let (_, observation) =
        rest.split_first_chunk::<8>().ok_or(DecodeError::Length { expected: 41, found: member.len() })?;
    record::decode_observation(observation)
}

impl PathStore for RedisStore {
    fn get(&self, prefix: Prefix, now: UnixTime) -> Result<Option<PathRecord>, StoreError> {
        match self.call(Work::Get(prefix))? {
            Answer::Record(record) => Ok(record.at(now, &self.retention)),
            Answer::Saved | Answer::Forgotten(_) => Err(StoreError::Poisoned),
        }
    }

    fn put(&self, prefix: Prefix, observation: Observation) -> Result<(), StoreError> {
        self.call(Work::Put(prefix, observation)).map(|_| ())
    }

    /// Goes through all keys of the namespace. With many that takes longer than the bound: then it goes on by itself,
    /// and tells nothing.
    fn expire(&self, now: UnixTime) -> Result<Forgotten, StoreError> {
        match self.call(Work::Expire(now)) {
            // The server does not read observations to forget them.
            Ok(Answer::Forgotten(expired)) => Ok(Forgotten { expired, unreadable: 0 }),
            Ok(Answer::Saved | Answer::Record(_)) => Err(StoreError::Poisoned),
            Err(StoreError::Late(_)) => Ok(Forgotten { expired: 0, unreadable: 0 }),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpListener};
    use std::process::{Child, Command, Stdio};

    use proptest::prelude::*;

    use super::super::tests::{keeps_the_contract, prefix, seen};
    use super::*;
    use crate::{PATIENCE, skip};

    /// A server of this test alone, which ends with it.
    struct Server {
        process: Child,
        port: u16,
        _folder: tempfile::TempDir,
    }

    impl Server {
        /// `None`, with the reason on standard error, where Redis is not installed.
        fn start() -> Option<Self> {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
            let folder = tempfile::tempdir().unwrap();
            let started = Command::new("redis-server")
                .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string()])
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .spawn();
            match started {
                Ok(process) => Some(Self { process, port, _folder: folder }),
                Err(error) => {
                    skip(&format!("redis-server cannot be started: {error}"));
                    None
                }
            }
        }

        fn store(&self) -> RedisStore {
            let store = RedisStore::new(config(self.port, PATIENCE.as_millis() as u64), Retention::default()).unwrap();
            let begin = Instant::now();
            while begin.elapsed() < PATIENCE {
                if store.get(prefix("203.0.113.0/24"), UnixTime::from_secs(0)).is_ok() {
                    return store;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            panic!("redis-server does not answer");
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.process.kill();
            let _ = self.process.wait();
        }
    }

    fn config(port: u16, bound_ms: u64) -> Config {
        Config {
            server: format!("redis://127.0.0.1:{port}/"),
            bound: Duration::from_millis(bound_ms),
            ..Config::default()
        }
    }

    /// A call has to fail within its bound of 50 ms. How busy the machine is says how much later this thread is told.
    fn fails_in_time(store: &RedisStore) -> StoreError {
        let started = Instant::now();
        let error = store.get(prefix("192.0.2.0/24"), UnixTime::from_secs(0)).unwrap_err();
        let taken = started.elapsed();
        assert!(taken < PATIENCE, "{taken:?} for a bound of 50 ms");
        error
    }

    #[test]
    fn a_server_keeps_the_contract() {
        let Some(server) = Server::start() else { return };
        keeps_the_contract(&server.store());
    }

    #[test]
    fn hosts_that_put_together_lose_nothing_of_each_other() {
        let Some(server) = Server::start() else { return };
        let here = prefix("192.0.2.0/24");
        let stores = [server.store(), server.store(), server.store()];
        std::thread::scope(|scope| {
            for store in &stores {
                scope.spawn(|| {
                    for _ in 0..10 {
                        store.put(here, seen(1000, 50, 70_000, 25)).unwrap();
                    }
                });
            }
        });
        let record = stores[0].get(here, UnixTime::from_secs(1000)).unwrap().unwrap();
        assert_eq!((record.observations().len(), record.samples()), (30, 30));
    }

    #[test]
    fn a_sweep_through_many_prefixes_holds_up_nobody() {
        let Some(server) = Server::start() else { return };
        let store = server.store();
        let mut direct = Client::open(format!("redis://127.0.0.1:{}/", server.port)).unwrap();
        const PREFIXES: u64 = 20_000;
        let mut old = redis::pipe();
        for place in 0..PREFIXES {
            let net = format!("10.{}.{}.0/24", place / 256, place % 256);
            old.zadd(format!("flowstart:path:{net}"), "old", 1).set(format!("flowstart:samples:{net}"), 1);
        }
        old.exec(&mut direct).unwrap();
        let here = prefix("192.0.2.0/24");
        store.put(here, seen(1_000_000_000, 50, 70_000, 25)).unwrap();
        let now = UnixTime::from_secs(1_000_000_000);
        let (forgotten, answers) = std::thread::scope(|scope| {
            let sweep = scope.spawn(|| store.expire(now).unwrap());
            let mut answers = 0;
            while !sweep.is_finished() {
                assert_eq!(store.get(here, now).unwrap().unwrap().observations().len(), 1);
                answers += 1;
            }
            (sweep.join().unwrap(), answers)
        });
        assert_eq!(forgotten.expired, PREFIXES);
        assert!(answers > 10, "{answers} answers while the sweep went on");
        let left: u64 = redis::cmd("DBSIZE").query(&mut direct).unwrap();
        assert_eq!(left, 2, "the observations and the number of the one that is left");
    }

    #[test]
    fn a_record_of_a_later_version_is_told() {
        let Some(server) = Server::start() else { return };
        let store = server.store();
        let mut direct = Client::open(format!("redis://127.0.0.1:{}/", server.port)).unwrap();
        redis::cmd("ZADD")
            .arg("flowstart:path:192.0.2.0/24")
            .arg(1)
            .arg([9u8, 1].as_slice())
            .exec(&mut direct)
            .unwrap();
        let error = store.get(prefix("192.0.2.0/24"), UnixTime::from_secs(0)).unwrap_err();
        assert!(matches!(error, StoreError::Record { cause: DecodeError::Version(9), .. }), "{error}");
    }

    #[test]
    fn a_server_that_comes_back_is_used_again() {
        let Some(server) = Server::start() else { return };
        let store = server.store();
        let mut direct = Client::open(format!("redis://127.0.0.1:{}/", server.port)).unwrap();
        let _ = redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").exec(&mut direct);
        assert!(store.get(prefix("192.0.2.0/24"), UnixTime::from_secs(0)).is_err(), "the connection is gone");
        assert!(store.get(prefix("192.0.2.0/24"), UnixTime::from_secs(0)).is_ok());
    }

    #[test]
    fn a_closed_port_fails_at_once() {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let store = RedisStore::new(config(port, 50), Retention::default()).unwrap();
        assert!(matches!(fails_in_time(&store), StoreError::Server(_) | StoreError::Late(_)));
    }

    #[test]
    fn a_server_that_never_answers_delays_no_longer_than_the_bound() {
        // Connections are accepted by the operating system and nobody reads from them.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let store = RedisStore::new(config(listener.local_addr().unwrap().port(), 50), Retention::default()).unwrap();
        for _ in 0..5 {
            assert!(matches!(fails_in_time(&store), StoreError::Server(_) | StoreError::Late(_)));
        }
    }

    #[test]
    fn a_server_nobody_can_reach_delays_no_longer_than_the_bound() {
        // 192.0.2.0/24 is for documentation (RFC 5737): no host answers, or the network refuses at once.
        let config =
            Config { server: "redis://192.0.2.1/".into(), bound: Duration::from_millis(50), ..Config::default() };
        let store = RedisStore::new(config, Retention::default()).unwrap();
        assert!(matches!(fails_in_time(&store), StoreError::Server(_) | StoreError::Late(_)));
    }

    #[test]
    fn a_server_that_answers_byte_by_byte_delays_no_longer_than_the_bound() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept() {
                std::thread::spawn(move || {
                    let mut sent = stream.write_all(b"$100000\r\n");
                    while sent.is_ok() {
                        std::thread::sleep(std::time::Duration::from_millis(10));
                        sent = stream.write_all(b"x");
                    }
                });
            }
        });
        let store = RedisStore::new(config(port, 50), Retention::default()).unwrap();
        for _ in 0..3 {
            assert!(matches!(fails_in_time(&store), StoreError::Server(_) | StoreError::Late(_)));
        }
    }

    /// A server that begins its answer in this way, and goes on with that.
    fn endless(begin: &'static [u8], more: &'static [u8]) -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut stream = stream;
                    let _ = stream.write_all(begin);
                    while stream.write_all(more).is_ok() {}
                });
            }
        });
        port
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        for (begin, more) in [(&b"*1000000000\r\n"[..], &b":1\r\n"[..]), (b"$1000000000\r\n", b"xxxxxxxxxxxxxxxx")] {
            let config = config(endless(begin, more), PATIENCE.as_millis() as u64);
            let store = RedisStore::new(config, Retention::default()).unwrap();
            let error = store.get(prefix("192.0.2.0/24"), UnixTime::from_secs(0)).unwrap_err().to_string();
            assert!(error.contains("1048576 bytes") || error.contains("too long"), "{error}");
        }
    }

    #[test]
    fn a_namespace_is_no_pattern() {
        assert_eq!(escaped("a*[b]?:"), "a\\*\\[b\\]\\?:");
        assert!(RedisStore::new(Config { server: "what".into(), ..Config::default() }, Retention::default()).is_err());
    }

    proptest! {
        #[test]
        fn no_member_makes_it_panic(member in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = decode_member(&member);
        }
    }
}
