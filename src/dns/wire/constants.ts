/** Numbers of the DNS protocol, by their names in the registries of IANA. */

export const HEADER_BYTES = 12;
/** The payload of a UDP response without EDNS: RFC 1035, section 2.3.4. */
export const UDP_BYTES_DEFAULT = 512;
/** The payload that passes every network without fragments: DNS flag day 2020. */
export const UDP_BYTES_MAX = 1232;
export const TCP_BYTES_MAX = 65_535;
/** RFC 1035, section 2.3.4: with the length of each label. */
export const NAME_BYTES_MAX = 255;
export const LABEL_BYTES_MAX = 63;

export const rcode = {
  noError: 0,
  formatError: 1,
  serverFailure: 2,
  nameError: 3,
  notImplemented: 4,
  refused: 5,
  /** Sent with EDNS only: RFC 6891, section 6.1.3. */
  badVersion: 16,
} as const;

export const recordType = {
  a: 1,
  ns: 2,
  cname: 5,
  soa: 6,
  ptr: 12,
  hinfo: 13,
  txt: 16,
  aaaa: 28,
  srv: 33,
  opt: 41,
  ixfr: 251,
  axfr: 252,
  any: 255,
} as const;

export const CLASS_IN = 1;

/** Bits of the second word of the header. */
export const flag = {
  response: 0x8000,
  authoritative: 0x0400,
  truncated: 0x0200,
  recursionDesired: 0x0100,
  recursionAvailable: 0x0080,
  authenticData: 0x0020,
  checkingDisabled: 0x0010,
} as const;

/** In the TTL of an OPT record: RFC 3225. */
export const DNSSEC_OK = 0x8000;
