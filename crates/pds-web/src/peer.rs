//! Who is at the other end of a connection: the unit by which room is shared.

use std::net::{IpAddr, Ipv4Addr};

/// One client for the purpose of sharing. Many scrapers behind one proxy are one peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    /// Everybody on a unix socket.
    Local,
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 network of 64 bits: one host can take any address in it.
    V6([u16; 4]),
}

impl Peer {
    /// The peer that has the address `ip`.
    pub(super) fn of(ip: IpAddr) -> Self {
        // A socket of both families shows IPv4 addresses as ::ffff:a.b.c.d.
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::V4(ip),
            IpAddr::V6(ip) => {
                let [a, b, c, d, ..] = ip.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv4_address_and_an_ipv6_network_are_each_one_peer() {
        let of = |ip: &str| Peer::of(ip.parse().unwrap());
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.2"), of("10.0.0.1"));
        assert_eq!(of("2001:db8::1"), of("2001:db8:0:0:ffff::2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}
