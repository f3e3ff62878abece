/** Addresses, ranges and URLs. */
import { isIP, isIPv6 } from "node:net";
import { ValueError, type ValueType } from "../flag.ts";
import { strings } from "./list.ts";
import { pattern } from "./text.ts";

/** A listening address: an IP, with "" where the flag allows none. */
export const ip: ValueType<string> = pattern("an IP address", (value) => isIP(value) !== 0, "192.0.2.7", {
  wrong: "192.0.2.999",
});

export const ipOrNone: ValueType<string> = {
  ...pattern("an IP address or nothing", (value) => value === "" || isIP(value) !== 0, "192.0.2.7"),
  wrong: "192.0.2.999",
};

/** One address, or one of each family: `192.0.2.7,2001:db8::7`. */
export const nodeIps: ValueType<readonly string[]> = dualStack(
  "string",
  "one IP address, or one IPv4 and one IPv6 address with a comma between",
  (value) => isIP(value) !== 0,
  isIPv6,
  "192.0.2.7,2001:db8::7",
  "node-7",
);

/** `10.0.0.0/16`, or one of each family. */
export const cidrs: ValueType<readonly string[]> = dualStack(
  "string",
  "one CIDR such as 10.0.0.0/16, or one of IPv4 and one of IPv6 with a comma between",
  isCidr,
  (value) => value.includes(":"),
  "10.0.0.0/16,2001:db8::/108",
  "10.0.0.0/40",
);

/** One CIDR or nothing. */
export const podCidr: ValueType<string> = pattern(
  "a CIDR such as 10.244.0.0/24; in IPv6 at most 65536 addresses (/112)",
  (value) => value === "" || (isCidr(value) && (!value.includes(":") || Number(value.split("/")[1]) >= 112)),
  "10.244.0.0/24",
);

export const ips: ValueType<readonly string[]> = strings({
  element: "an IP address",
  accepts: (value) => isIP(value) !== 0,
  sample: "10.96.0.10,2001:db8::a",
  wrong: "dns.example",
});

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/** `30000-32767`, inclusive at both ends. */
export const portRange: ValueType<PortRange> = {
  name: "N1-N2",
  allowed: "two ports N1-N2 between 1 and 65535, the lower one first",
  sample: "31000-31999",
  wrong: "32767-30000",
  parse(value) {
    const match = /^(\d{1,5})-(\d{1,5})$/.exec(value);
    const [first, last] = [Number(match?.[1]), Number(match?.[2])];
    if (match === null || first < 1 || last > 65_535 || first > last) throw new ValueError(`must be ${this.allowed}`);
    return { first, last };
  },
  print: ({ first, last }) => `${first}-${last}`,
};

/** `unix:///run/containerd/containerd.sock`; a bare path is not accepted. */
export const endpoint: ValueType<string> = pattern(
  "a socket URL such as unix:///run/containerd/containerd.sock",
  (value) => value === "" || /^unix:\/\/\/.+/.test(value) || /^tcp:\/\/.+:\d+$/.test(value),
  "unix:///run/example.sock",
  { wrong: "/run/containerd/containerd.sock" },
);

export const httpUrl: ValueType<string> = pattern(
  "a URL that starts with http:// or https://",
  (value) => value === "" || isUrl(value, ["http:", "https:"]),
  "https://example.com/pods.yaml",
  { wrong: "ftp://example.com" },
);

export const httpsUrl: ValueType<string> = pattern(
  "a URL that starts with https://",
  (value) => value === "" || isUrl(value, ["https:"]),
  "https://issuer.example.com",
  { wrong: "http://issuer.example.com" },
);

/** URLs of the store's engines. */
export const storeServers: ValueType<readonly string[]> = strings({
  element: "a URL: http(s)://host:port of a store, level:///path of the embedded one, or memory://",
  accepts: (value) =>
    value === "memory://" || /^level:\/\/\/.+/.test(value) || /^https?:\/\/[^/\s]+:\d+\/?$/.test(value),
  sample: "https://192.0.2.1:2379,https://192.0.2.2:2379",
  wrong: "192.0.2.1",
});

function isUrl(value: string, protocols: readonly string[]): boolean {
  return protocols.includes(URL.parse(value)?.protocol ?? "");
}

function isCidr(value: string): boolean {
  const [address = "", bits = "", ...rest] = value.split("/");
  const family = isIP(address);
  return rest.length === 0 && family !== 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}

function dualStack(
  name: string,
  allowed: string,
  accepts: (value: string) => boolean,
  isSix: (value: string) => boolean,
  sample: string,
  wrong: string,
): ValueType<readonly string[]> {
  return {
    name,
    allowed,
    sample,
    wrong,
    parse(value) {
      const list = value === "" ? [] : value.split(",").map((part) => part.trim());
      const mixed = list.length < 2 || (list.length === 2 && isSix(list[0]!) !== isSix(list[1]!));
      if (!list.every(accepts) || !mixed) throw new ValueError(`must be ${allowed}`);
      return list;
    },
    print: (list) => list.join(","),
  };
}
