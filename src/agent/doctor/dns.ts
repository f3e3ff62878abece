/** The resolver's configuration, which pods inherit, and a lookup. */
import { isIP } from "node:net";
import { type Finding, finding, findingOf } from "./finding.ts";

export interface DnsFacts {
  readonly path: string;
  /** Undefined: it cannot be read. */
  readonly resolvConf: string | undefined;
  /** The name that was looked up; undefined: none. */
  readonly name: string | undefined;
  /** Why the lookup failed. */
  readonly lookupError: string | undefined;
}

const SERVERS_MAX = 3;
const SEARCH_MAX = 32;
const SEARCH_CHARS_MAX = 2048;

export function checkDns({ path, resolvConf, name, lookupError }: DnsFacts): readonly Finding[] {
  const lookup =
    name === undefined ? [] : [findingOf("dns-lookup", name, lookupError && `${name}: ${lookupError}`, "warning")];
  if (path === "") return [finding("dns-servers", "ok", "--resolv-conf is empty: pods inherit nothing"), ...lookup];
  if (resolvConf === undefined) return [finding("dns-servers", "error", `${path} cannot be read`), ...lookup];
  const servers = valuesOf(resolvConf, "nameserver").flat();
  const search = valuesOf(resolvConf, "search").at(-1) ?? [];
  const wrong = servers.filter((server) => isIP(server.replace(/%.*$/, "")) === 0);
  const loopback = servers.filter((server) => server === "::1" || server.startsWith("127."));
  return [
    checkServers(path, servers, wrong),
    findingOf(
      "dns-limits",
      `${servers.length} servers, ${search.length} domains`,
      findExcess(path, servers, search),
      "warning",
    ),
    findingOf(
      "dns-loop",
      "no server is a loopback address",
      loopback.length > 0 ? `${path} names ${loopback.join(", ")}` : undefined,
      "warning",
    ),
    ...lookup,
  ];
}

function checkServers(path: string, servers: readonly string[], wrong: readonly string[]): Finding {
  if (servers.length === 0) return finding("dns-servers", "warning", `${path} names no server`);
  if (wrong.length > 0) return finding("dns-servers", "warning", `${path}: ${wrong.join(", ")} is not an address`);
  return finding("dns-servers", "ok", servers.join(", "));
}

function findExcess(path: string, servers: readonly string[], search: readonly string[]): string | undefined {
  if (servers.length > SERVERS_MAX) return `${path} names ${servers.length} servers`;
  if (search.length > SEARCH_MAX) return `${path} has ${search.length} search domains`;
  const chars = search.join(" ").length;
  return chars > SEARCH_CHARS_MAX ? `${path} has search domains of ${chars} characters` : undefined;
}

function valuesOf(text: string, key: string): readonly (readonly string[])[] {
  return text
    .split("\n")
    .map((line) =>
      line
        .replace(/[#;].*$/, "")
        .trim()
        .split(/\s+/),
    )
    .filter(([first]) => first === key)
    .map(([, ...values]) => values);
}
