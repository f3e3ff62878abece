/** Who a proxy in front says it is: believed in headers, once the proxy has shown a certificate of its authority. */
import type { Clock } from "../../std/time/clock.ts";
import type { Authenticator, Credentials, UserInfo } from "../user.ts";
import { Refusal } from "./invalid-credentials-error.ts";
import { ClientVerifier } from "./x509/x509.ts";

export interface RequestHeaderNames {
  /** The first that is there counts. */
  readonly usernames: readonly string[];
  readonly uids: readonly string[];
  /** All that are there count. */
  readonly groups: readonly string[];
  /** What follows in a header's name is the key, percent-encoded. */
  readonly extraPrefixes: readonly string[];
}

export interface RequestHeaderOptions {
  readonly caPem: string;
  readonly clock: Clock;
  /** Common names of proxies; empty for every certificate of the authority. */
  readonly allowedNames: readonly string[];
  readonly names: RequestHeaderNames;
}

export interface RequestHeaderAuthenticator {
  readonly authenticate: Authenticator;
  setAuthorities(caPem: string): void;
}

export function requestHeaderAuthenticator(options: RequestHeaderOptions): RequestHeaderAuthenticator {
  const { allowedNames } = options;
  const names = {
    usernames: lowered(options.names.usernames),
    uids: lowered(options.names.uids),
    groups: lowered(options.names.groups),
    extraPrefixes: lowered(options.names.extraPrefixes),
  };
  const verifier = new ClientVerifier(options.caPem, options.clock, ({ commonName }) => {
    if (allowedNames.length === 0 || allowedNames.includes(commonName)) return true;
    throw new Refusal(`x509: subject with cn=${JSON.stringify(commonName)} is not in the allowed list`);
  });
  return {
    authenticate: (credentials) =>
      verifier.verify(credentials) === undefined ? undefined : userIn(credentials, names),
    setAuthorities: (caPem) => verifier.setAuthorities(caPem),
  };
}

function userIn(credentials: Credentials, names: RequestHeaderNames): UserInfo | undefined {
  const values = (name: string): readonly string[] =>
    (credentials.headerValues?.(name) ?? []).filter((value) => value !== "");
  const first = (from: readonly string[]): string => from.flatMap(values)[0] ?? "";
  const name = first(names.usernames);
  if (name === "") return undefined;
  // Not a plain object: a proxy may pass on any key.
  const extra = new Map<string, readonly string[]>();
  for (const header of credentials.headerNames?.() ?? []) {
    const prefix = names.extraPrefixes.find((each) => header.startsWith(each));
    if (prefix === undefined) continue;
    const key = unescaped(header.slice(prefix.length));
    extra.set(key, [...(extra.get(key) ?? []), ...(credentials.headerValues?.(header) ?? [])]);
  }
  return { name, uid: first(names.uids), groups: names.groups.flatMap(values), extra: Object.fromEntries(extra) };
}

function lowered(names: readonly string[]): readonly string[] {
  return names.map((name) => name.toLowerCase());
}

/** Keys are percent-encoded by those who know; others send them as they are. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
