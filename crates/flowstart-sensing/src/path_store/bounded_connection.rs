//! A connection to a Redis server whose answers are bounded in bytes and in time.
//!
//! The library's own connection reads an answer to its end, however long that is, and its time limit is that of each
//! read. This one asks with the library's commands and reads with its parser, from a stream that ends.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use redis::{Client, Cmd, ConnectionAddr, ConnectionLike, ErrorKind, Parser, RedisError, RedisResult, Value};

/// Longest answer in bytes: a hundred times that to the largest question here.
const LARGEST_ANSWER: usize = 1 << 20;

/// A connection.
pub(super) struct BoundedConnection {
    stream: TcpStream,
    parser: Parser,
    database: i64,
    /// The longest that connecting, and each answer, take.
    bound: Duration,
}

impl BoundedConnection {
    /// Connects to the client's server.
    ///
    /// # Errors
    ///
    /// A server that is not reached within the bound, or that refuses user, password or database.
    pub(super) fn open(client: &Client, bound: Duration) -> RedisResult<Self> {
        let info = client.get_connection_info();
        let ConnectionAddr::Tcp(host, port) = info.addr() else {
            return Err((ErrorKind::InvalidClientConfig, "a server is reached by TCP without TLS").into());
        };
        let mut reached = Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        for address in (host.as_str(), *port).to_socket_addrs()? {
            reached = TcpStream::connect_timeout(&address, bound);
            if reached.is_ok() {
                break;
            }
        }
        let stream = reached?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(bound))?;
        let settings = info.redis_settings();
        let mut connection = Self { stream, parser: Parser::new(), database: settings.db(), bound };
        if let Some(password) = settings.password() {
            let mut command = redis::cmd("AUTH");
            if let Some(user) = settings.username() {
                command.arg(user);
            }
            command.arg(password).exec(&mut connection)?;
        }
        if connection.database != 0 {
            redis::cmd("SELECT").arg(connection.database).exec(&mut connection)?;
        }
        Ok(connection)
    }

    /// Sends commands and reads so many answers to them, all of them together within the bounds.
    fn ask(&mut self, commands: &[u8], answers: usize) -> RedisResult<Vec<Value>> {
        self.stream.write_all(commands)?;
        let mut source = Bounded { stream: &self.stream, left: LARGEST_ANSWER, deadline: Instant::now() + self.bound };
        (0..answers).map(|_| self.parser.parse_value(&mut source)).collect()
    }
}

impl ConnectionLike for BoundedConnection {
    fn req_packed_command(&mut self, command: &[u8]) -> RedisResult<Value> {
        let answer = self.ask(command, 1)?.pop();
        answer.ok_or_else(|| RedisError::from((ErrorKind::Parse, "the server has not answered")))
    }

    fn req_packed_commands(&mut self, commands: &[u8], offset: usize, count: usize) -> RedisResult<Vec<Value>> {
        let mut answers = self.ask(commands, offset + count)?;
        Ok(answers.split_off(offset))
    }

    fn get_db(&self) -> i64 {
        self.database
    }

    fn check_connection(&mut self) -> bool {
        Cmd::new().arg("PING").exec(self).is_ok()
    }

    fn is_open(&self) -> bool {
        true
    }
}

/// What is left of a stream before its bounds.
struct Bounded<'a> {
    stream: &'a TcpStream,
    left: usize,
    deadline: Instant,
}

impl Read for Bounded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let time = self.deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "the answer takes too long"));
        }
        if self.left == 0 {
            return Err(io::Error::other(format!("an answer has more than {LARGEST_ANSWER} bytes")));
        }
        self.stream.set_read_timeout(Some(time))?;
        let most = buffer.len().min(self.left);
        let length = self.stream.read(&mut buffer[..most])?;
        self.left -= length;
        Ok(length)
    }
}
