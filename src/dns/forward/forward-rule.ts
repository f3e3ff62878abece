/** Rules of `--dns-forward`: `192.0.2.53`, `corp.example=192.0.2.53:5353`. */
import { isEncodableName } from "../wire/query.ts";
import { parseServerAddress, type ServerAddress } from "./server-address.ts";

/** The servers of one domain, or with the domain "" of all names. */
export interface ForwardRule {
  /** In lower case, without a final dot. */
  readonly domain: string;
  readonly server: ServerAddress;
}

/** Undefined when malformed. */
export function parseForwardRule(text: string): ForwardRule | undefined {
  const sign = text.indexOf("=");
  const domain = text.slice(0, Math.max(sign, 0)).toLowerCase().replace(/\.$/, "");
  const server = parseServerAddress(text.slice(sign + 1));
  const isDomain = sign === -1 || (domain !== "" && isEncodableName(domain) && /^[a-z0-9._-]+$/.test(domain));
  return server !== undefined && isDomain ? { domain, server } : undefined;
}
