//! The rate of the link to the Internet provider, from the gateway at home.
//!
//! Reference: UPnP Forum, WANCommonInterfaceConfig:1 (2001), section 2.4.2 (`GetCommonLinkProperties`), which DSL Forum
//! TR-064 (2004) has with the same names; UPnP Device Architecture 1.0, sections 1.2 (search) and 3 (control). Rüth et
//! al., "Blitz-starting QUIC Connections" (2019), section 3.1, name TR-064 as a client's source. A multicast search
//! finds gateways, their description names the control URL, and one call gives the bit rates of layer 1.
//!
//! Differences from the references: searches over IPv4 only, and without credentials: TR-064 devices that want a login
//! answer the same question through UPnP, so after one that refuses the next is asked. A description or control URL
//! must be on the host that answered, so a message from the local network cannot make this program ask elsewhere.
//!
//! Rates are those of layer 1: with PPPoE and ATM or VDSL framing, IP packets get a few per cent less. Some gateways
//! (`miniupnpd`) call every access a cable; so the technology is their claim.
//!
//! Status: recorded answers, arbitrary answers, a device that speaks TR-064 alone, and `miniupnpd` where it is
//! installed.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use flowstart_core::time::Duration;
use serde::{Deserialize, Serialize};
use ureq::http::Uri;

use message::{SEARCH_TARGETS, error_code, location, properties, resolved, service};

pub mod message;

pub use message::{AnswerError, LinkProperties};

/// Where UPnP searches (UPnP Device Architecture 1.0, section 1.2.2).
const SEARCH_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(239, 255, 255, 250)), 1900);
/// Hops that a search crosses (UPnP Device Architecture 1.1, section 1.3.2).
const SEARCH_TTL: u32 = 2;
/// The question.
const ACTION: &str = "GetCommonLinkProperties";
/// Devices that are asked, of all that answer a search.
const ASKED_MAX: usize = 8;
/// Datagrams that are read after the end of a search.
const LATE_MAX: usize = 64;
/// Largest document that is read.
const DOCUMENT_MAX: u64 = 256 * 1024;
/// Time limits for asking a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The longest that a search takes. Default 2 s: a gateway may wait up to MX, which is 1 s here, and wireless takes
    /// more.
    pub search_bound: Duration,
    /// The longest that description and question take together. Default 2 s: chosen, gateways are slow.
    pub question_bound: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self { search_bound: Duration::from_millis(2000), question_bound: Duration::from_millis(2000) }
    }
}

/// Why there is no answer from a gateway.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// The search could not be sent or received.
    #[error("the search for gateways failed: {0}")]
    Search(#[source] io::Error),
    /// Nobody answered.
    #[error("no gateway answered within {0}")]
    None(Duration),
    /// An address is invalid, or leads to another host.
    #[error("`{url}` is no address on the gateway {gateway}")]
    Elsewhere {
        /// The address.
        url: String,
        /// The gateway.
        gateway: IpAddr,
    },
    /// The gateway could not be asked, or did not answer in time.
    #[error("{url} could not be asked: {cause}")]
    Unreachable {
        /// What was asked.
        url: String,
        /// Why.
        #[source]
        cause: Box<ureq::Error>,
    },
    /// The gateway refused; UPnP's error code if it gave one (UPnP Device Architecture 1.0, section 3.2.2).
    #[error("{url} answered with status {status} (UPnP error {code:?})")]
    Refused {
        /// What was asked.
        url: String,
        /// HTTP's status.
        status: u16,
        /// UPnP's code.
        code: Option<u32>,
    },
    /// An answer is useless.
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// Finds gateways on the network of this host and asks one after the other, until one tells its rates.
///
/// # Errors
///
/// What the last of them answered, or that none is there.
pub fn link_properties(config: &Config) -> Result<LinkProperties, GatewayError> {
    link_properties_at(SEARCH_ADDRESS, config)
}

fn link_properties_at(address: SocketAddr, config: &Config) -> Result<LinkProperties, GatewayError> {
    let mut asked: Vec<Found> = Vec::new();
    let mut last = GatewayError::None(config.search_bound);
    let told = search_at(address, config.search_bound, |found| {
        if asked.len() >= ASKED_MAX || asked.contains(&found) {
            return None;
        }
        let answer = link_properties_of(&found.description, found.gateway, config.question_bound);
        asked.push(found);
        answer.map_err(|error| last = error).ok()
    });
    told.map_err(GatewayError::Search)?.ok_or(last)
}

/// A gateway that answered a search.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    /// Who answered.
    gateway: IpAddr,
    /// Where its description is.
    description: String,
}

/// Searches for as long as `bound`, or until `ask` gets an answer from a gateway that was found. What `ask` takes,
/// counts, but who has answered by then is asked, too, until as much time again has passed.
fn search_at<T>(
    address: SocketAddr,
    bound: Duration,
    mut ask: impl FnMut(Found) -> Option<T>,
) -> io::Result<Option<T>> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_multicast_ttl_v4(SEARCH_TTL)?;
    for target in SEARCH_TARGETS {
        let message = format!(
            "M-SEARCH * HTTP/1.1\r\nHOST: {SEARCH_ADDRESS}\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: {target}\r\n\r\n"
        );
        socket.send_to(message.as_bytes(), address)?;
    }
    let end = Instant::now() + std_duration(bound);
    let mut datagram = [0; 2048];
    let (mut late, latest) = (0, end + std_duration(bound));
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // Others answered while one was asked, which may have taken all of the time.
            late += 1;
            if late > LATE_MAX || Instant::now() >= latest {
                return Ok(None);
            }
            socket.set_nonblocking(true)?;
        } else {
            socket.set_read_timeout(Some(left))?;
        }
        match socket.recv_from(&mut datagram) {
            Ok((length, from)) => {
                let described = datagram.get(..length).and_then(location);
                let found = described.map(|description| Found { gateway: from.ip(), description });
                if let Some(told) = found.and_then(&mut ask) {
                    return Ok(Some(told));
                }
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Asks the gateway whose description is at `description`. The gateway must be at the address `gateway`.
pub fn link_properties_of(description: &str, gateway: IpAddr, bound: Duration) -> Result<LinkProperties, GatewayError> {
    let end = Instant::now() + std_duration(bound);
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).max_redirects(0).proxy(None).build().new_agent();
    let left = || Some(end.saturating_duration_since(Instant::now()).max(std::time::Duration::from_millis(1)));
    let text_of = |url: &str, mut response: ureq::http::Response<ureq::Body>| {
        let read = response.body_mut().with_config().limit(DOCUMENT_MAX).lossy_utf8(true).read_to_string();
        let text = read.map_err(|cause| GatewayError::Unreachable { url: url.into(), cause: Box::new(cause) })?;
        match response.status().as_u16() {
            200 => Ok(text),
            status => Err(GatewayError::Refused { url: url.into(), status, code: error_code(&text) }),
        }
    };
    let unreachable = |url: &str, cause| GatewayError::Unreachable { url: url.to_owned(), cause: Box::new(cause) };

    let url = on_gateway(description, gateway)?.to_string();
    let asked = agent.get(&url).config().timeout_global(left()).build().call();
    let text = text_of(&url, asked.map_err(|cause| unreachable(&url, cause))?)?;
    let service = service(&text)?;

    let control = on_gateway(&resolved(&url, service.base.as_deref(), &service.control), gateway)?.to_string();
    let kind = service.kind;
    let body = format!(
        "<?xml version=\"1.0\"?><s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\" \
         s:encodingStyle=\"http://schemas.xmlsoap.org/soap/encoding/\"><s:Body>\
         <u:{ACTION} xmlns:u=\"{kind}\"/></s:Body></s:Envelope>"
    );
    let asked = agent
        .post(&control)
        .config()
        .timeout_global(left())
        .build()
        .content_type("text/xml; charset=\"utf-8\"")
        .header("SOAPAction", format!("\"{kind}#{ACTION}\""))
        .send(body.as_str());
    let text = text_of(&control, asked.map_err(|cause| unreachable(&control, cause))?)?;
    Ok(properties(&text)?)
}

fn std_duration(span: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(span.as_nanos())
}

/// The address if it is plain HTTP to the gateway itself.
fn on_gateway(url: &str, gateway: IpAddr) -> Result<Uri, GatewayError> {
    let elsewhere = || GatewayError::Elsewhere { url: url.into(), gateway };
    let uri: Uri = url.parse().map_err(|_| elsewhere())?;
    let host = uri.host().map(|host| host.trim_start_matches('[').trim_end_matches(']'));
    let same = host.and_then(|host| host.parse::<IpAddr>().ok()) == Some(gateway);
    if same && uri.scheme_str() == Some("http") { Ok(uri) } else { Err(elsewhere()) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::process::{Command, Stdio};
    use std::thread::JoinHandle;

    use proptest::prelude::*;

    use flowstart_core::path::{AccessTechnology, Hint};
    use flowstart_core::units::Rate;

    use super::message::{SERVICES, Service};
    use super::*;
    use crate::{PATIENCE, skip};

    /// The bound of a call that succeeds.
    const PATIENCE_BOUND: Duration = Duration::from_millis(PATIENCE.as_millis() as u64);

    /// Recorded from `miniupnpd` 2.3.1, with its names of host and system left out.
    const DESCRIPTION: &str = include_str!("recorded/miniupnpd-description.xml");
    /// Recorded from the same.
    const ANSWER: &str = include_str!("recorded/miniupnpd-answer.xml");

    #[test]
    fn a_description_names_the_control_url() {
        let found = service(DESCRIPTION).unwrap();
        assert_eq!(found, Service { kind: SERVICES[0], control: "/ctl/CmnIfCfg".into(), base: None });
    }

    #[test]
    fn a_recorded_answer_is_understood() {
        let properties = properties(ANSWER).unwrap();
        assert_eq!(properties.downstream, Some(Rate::from_mbit(25)));
        assert_eq!(properties.upstream, Some(Rate::from_mbit(5)));
        let hint = Hint { bandwidth: Rate::from_mbit(25), technology: AccessTechnology::Docsis };
        assert_eq!(properties.hint(), Some(hint));
    }

    #[test]
    fn tr_064_has_the_same_names() {
        let description = DESCRIPTION.replace("urn:schemas-upnp-org:service", "urn:dslforum-org:service");
        assert_eq!(service(&description).unwrap().kind, SERVICES[1]);
        let answer = ANSWER.replace("urn:schemas-upnp-org:service", "urn:dslforum-org:service").replace("Cable", "DSL");
        assert_eq!(properties(&answer).unwrap().technology, AccessTechnology::Dsl);
    }

    #[test]
    fn what_a_gateway_does_not_know_is_none() {
        for unknown in ["0", "4294967295"] {
            let answer = ANSWER.replace("25000000", unknown);
            assert_eq!(properties(&answer).unwrap().downstream, None, "{unknown}");
        }
        assert_eq!(properties(&ANSWER.replace(">Up<", ">Down<")).unwrap().hint(), None, "the link is down");
    }

    #[test]
    fn what_is_wrong_with_an_answer_is_told() {
        assert!(matches!(properties("<a/>"), Err(AnswerError::Missing("NewLayer1DownstreamMaxBitRate"))));
        assert!(matches!(properties(&ANSWER.replace("25000000", "fast")), Err(AnswerError::Rate { .. })));
        assert!(matches!(properties("what"), Err(AnswerError::Xml(_))));
        assert!(matches!(service("<root/>"), Err(AnswerError::NoService)));
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbb\">]><a>&b;</a>";
        assert!(matches!(properties(bomb), Err(AnswerError::Xml(_))), "entities are refused");
        assert!(matches!(properties(&"<a>".repeat(100_000)), Err(AnswerError::Depth)));
        let fault = "<s:Fault xmlns:s=\"s\"><errorCode>401</errorCode></s:Fault>";
        assert_eq!(error_code(fault), Some(401));
    }

    #[test]
    fn addresses_resolve_within_the_gateway() {
        let document = "http://192.168.0.1:5000/igd/desc.xml";
        assert_eq!(resolved(document, None, "/ctl"), "http://192.168.0.1:5000/ctl");
        assert_eq!(resolved(document, None, "ctl"), "http://192.168.0.1:5000/igd/ctl");
        assert_eq!(resolved("http://192.168.0.1:5000", None, "ctl"), "http://192.168.0.1:5000/ctl");
        assert_eq!(resolved(document, Some("http://192.168.0.1:80/"), "ctl"), "http://192.168.0.1:80/ctl");
        assert_eq!(resolved(document, None, "http://192.168.0.1/x"), "http://192.168.0.1/x");
        let gateway = "192.168.0.1".parse().unwrap();
        assert!(on_gateway(document, gateway).is_ok());
        for elsewhere in ["http://192.168.0.2/", "https://192.168.0.1/", "file:///etc/passwd", "http://example/", ""] {
            assert!(matches!(on_gateway(elsewhere, gateway), Err(GatewayError::Elsewhere { .. })), "{elsewhere}");
        }
    }

    #[test]
    fn an_answer_to_a_search_names_the_description() {
        let answer = "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\n\
                      ST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\nEXT:\r\n\
                      Location: http://192.168.0.1:5000/rootDesc.xml\r\n\r\n";
        assert_eq!(location(answer.as_bytes()).as_deref(), Some("http://192.168.0.1:5000/rootDesc.xml"));
        assert_eq!(location(answer.replace("Gateway", "Other").as_bytes()), None);
        assert_eq!(location(b"NOTIFY * HTTP/1.1\r\n\r\n"), None);
    }

    #[test]
    fn a_search_finds_who_answers_and_ends_when_nobody_does() {
        let gateway = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = gateway.local_addr().unwrap();
        let started = Instant::now();
        assert_eq!(search_at(address, Duration::from_millis(50), Some).unwrap(), None);
        assert!(started.elapsed() < PATIENCE);

        let thread = std::thread::spawn(move || {
            let mut datagram = [0; 2048];
            for _ in 0..2 * SEARCH_TARGETS.len() - 1 {
                let (length, from) = gateway.recv_from(&mut datagram).unwrap();
                assert!(str::from_utf8(&datagram[..length]).unwrap().starts_with("M-SEARCH * HTTP/1.1\r\n"));
                let answer = format!("HTTP/1.1 200 OK\r\nST: {}\r\nLOCATION: http://x/\r\n\r\n", SEARCH_TARGETS[1]);
                let _ = gateway.send_to(b"nonsense", from);
                let _ = gateway.send_to(answer.as_bytes(), from);
            }
        });
        let found = search_at(address, PATIENCE_BOUND, Some).unwrap();
        assert_eq!(found, Some(Found { gateway: Ipv4Addr::LOCALHOST.into(), description: "http://x/".into() }));
        thread.join().unwrap();
    }

    #[test]
    fn a_gateway_that_never_answers_delays_no_longer_than_the_bound() {
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}/rootDesc.xml", silent.local_addr().unwrap());
        let started = Instant::now();
        let error = link_properties_of(&url, Ipv4Addr::LOCALHOST.into(), Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, GatewayError::Unreachable { .. }), "{error}");
        assert!(started.elapsed() < PATIENCE);
    }

    /// A device that answers one request after the other with these statuses and documents; then the requests.
    fn device<const N: usize>(answers: [(&'static str, String); N]) -> (SocketAddr, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for (status, body) in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = String::new();
                let mut part = [0; 4096];
                while !(request.ends_with("</s:Envelope>")
                    || request.starts_with("GET") && request.ends_with("\r\n\r\n"))
                {
                    let length = stream.read(&mut part).unwrap();
                    request.push_str(str::from_utf8(&part[..length]).unwrap());
                }
                requests.push(request);
                let head = format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(body.as_bytes()).unwrap();
            }
            requests
        });
        (address, thread)
    }

    #[test]
    fn a_device_that_speaks_tr_064_alone_is_found_after_one_that_refuses() {
        let tr_064 = |text: &str| text.replace("urn:schemas-upnp-org:", "urn:dslforum-org:");
        let refusal = "<s:Fault xmlns:s=\"s\"><errorCode>606</errorCode></s:Fault>".to_owned();
        let (locked, first) = device([("200 OK", DESCRIPTION.to_owned()), ("401 Unauthorized", refusal)]);
        let (open, second) = device([("200 OK", tr_064(DESCRIPTION)), ("200 OK", tr_064(ANSWER))]);
        let answering = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = answering.local_addr().unwrap();
        let searched = std::thread::spawn(move || {
            let mut datagram = [0; 2048];
            let mut targets = Vec::new();
            for _ in SEARCH_TARGETS {
                let (length, from) = answering.recv_from(&mut datagram).unwrap();
                let search = str::from_utf8(&datagram[..length]).unwrap().to_owned();
                let target = search.lines().find_map(|line| line.strip_prefix("ST: ")).unwrap().to_owned();
                let at = if target.contains("dslforum") { open } else { locked };
                let answer = format!("HTTP/1.1 200 OK\r\nST: {target}\r\nLOCATION: http://{at}/desc.xml\r\n\r\n");
                answering.send_to(answer.as_bytes(), from).unwrap();
                targets.push(target);
            }
            targets
        });
        let patience = Config { search_bound: PATIENCE_BOUND, question_bound: PATIENCE_BOUND };
        let told = link_properties_at(address, &patience).unwrap();
        assert_eq!(told.downstream, Some(Rate::from_mbit(25)));
        assert_eq!(searched.join().unwrap(), SEARCH_TARGETS);
        assert_eq!(first.join().unwrap().len(), 2);
        let question = &second.join().unwrap()[1];
        assert!(question.contains("urn:dslforum-org:service:WANCommonInterfaceConfig:1#GetCommonLinkProperties"));
    }

    #[test]
    fn a_device_that_takes_all_of_the_time_hides_no_other() {
        let network = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = network.local_addr().unwrap();
        let answers = std::thread::spawn(move || {
            let (_, from) = network.recv_from(&mut [0; 512]).unwrap();
            for name in ["slow", "quick"] {
                let told = format!(
                    "HTTP/1.1 200 OK\r\nST: {}\r\nLOCATION: http://127.0.0.1/{name}\r\n\r\n",
                    SEARCH_TARGETS[1]
                );
                network.send_to(told.as_bytes(), from).unwrap();
            }
        });
        let bound = Duration::from_millis(300);
        let found = search_at(address, bound, |found| {
            let is_quick = found.description.ends_with("quick");
            if !is_quick {
                std::thread::sleep(std_duration(bound));
            }
            is_quick.then_some(found.description)
        });
        answers.join().unwrap();
        assert_eq!(found.unwrap().as_deref(), Some("http://127.0.0.1/quick"));
    }

    #[test]
    fn a_gateway_is_asked_as_upnp_says() {
        let (address, thread) = device([("200 OK", DESCRIPTION.to_owned()), ("200 OK", ANSWER.to_owned())]);
        let url = format!("http://{address}/rootDesc.xml");
        let told = link_properties_of(&url, Ipv4Addr::LOCALHOST.into(), PATIENCE_BOUND).unwrap();
        assert_eq!(told.downstream, Some(Rate::from_mbit(25)));
        let requests = thread.join().unwrap();
        assert!(requests[0].starts_with("GET /rootDesc.xml HTTP/1.1\r\n"));
        assert!(requests[1].starts_with("POST /ctl/CmnIfCfg HTTP/1.1\r\n"));
        let action = "\"urn:schemas-upnp-org:service:WANCommonInterfaceConfig:1#GetCommonLinkProperties\"";
        assert!(requests[1].to_ascii_lowercase().contains(&format!("soapaction: {action}").to_ascii_lowercase()));
    }

    #[test]
    fn miniupnpd_tells_its_rates() {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let settings = folder.path().join("miniupnpd.conf");
        let Ok(Some(outside)) = crate::interface::interface_towards(Ipv4Addr::new(192, 0, 2, 1).into()) else {
            return skip("this host has no interface to the outside, which miniupnpd wants");
        };
        let text = format!(
            "ext_ifname={outside}\next_ip=1.2.3.4\nlistening_ip=lo\nport={port}\nenable_upnp=yes\nenable_natpmp=no\n\
             bitrate_up=5000000\nbitrate_down=25000000\nuuid=fc4ec57e-b051-11db-88f8-0060085db3f6\n"
        );
        std::fs::write(&settings, text).unwrap();
        let started = Command::new("miniupnpd")
            .arg("-d")
            .arg("-f")
            .arg(&settings)
            .arg("-P")
            .arg(folder.path().join("pid"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut process = match started {
            Ok(process) => process,
            Err(error) => return skip(&format!("miniupnpd cannot be started: {error}")),
        };
        let url = format!("http://127.0.0.1:{port}/rootDesc.xml");
        let mut told = None;
        let begin = Instant::now();
        while told.is_none() && process.try_wait().unwrap().is_none() && begin.elapsed() < PATIENCE {
            std::thread::sleep(std::time::Duration::from_millis(40));
            told = link_properties_of(&url, Ipv4Addr::LOCALHOST.into(), PATIENCE_BOUND).ok();
        }
        let ended = process.try_wait().unwrap();
        let _ = process.kill();
        let _ = process.wait();
        match (told, ended) {
            (Some(told), _) => {
                assert_eq!((told.downstream, told.upstream), (Some(Rate::from_mbit(25)), Some(Rate::from_mbit(5))));
            }
            (None, Some(status)) => skip(&format!("miniupnpd ended with {status}, it needs more rights")),
            (None, None) => panic!("miniupnpd runs and tells nothing"),
        }
    }

    proptest! {
        #[test]
        fn nothing_that_a_gateway_sends_makes_it_panic(
            text in ".*", place in any::<prop::sample::Index>(), byte in any::<u8>(),
            datagram in prop::collection::vec(any::<u8>(), 0..200), reference in ".*", base in ".*",
        ) {
            let _ = (service(&text), properties(&text), error_code(&text), location(&datagram));
            let _ = resolved(&base, None, &reference);
            let _ = resolved("http://192.168.0.1/x", Some(&base), &reference);
            let _ = on_gateway(&reference, Ipv4Addr::LOCALHOST.into());
            for recorded in [DESCRIPTION, ANSWER] {
                let mut damaged = recorded.as_bytes().to_vec();
                let place = place.index(damaged.len());
                damaged[place] = byte;
                let damaged = String::from_utf8_lossy(&damaged);
                let _ = (service(&damaged), properties(&damaged));
                if let Some(cut) = recorded.get(..place) {
                    let _ = (service(cut), properties(cut));
                }
            }
        }
    }
}
