/**
 * Authentication by request headers (`--requestheader-*`): trusted from a proxy with a certificate of the configured
 * CA.
 */
import type { Clock } from "../../std/time/clock.ts";
import type { Authenticator, Credentials, UserInfo } from "../user.ts";
import { InvalidCredentialsError } from "./invalid-credentials-error.ts";
import { ClientVerifier } from "./x509/x509.ts";

export interface RequestHeaderNames {
  /** The first header that is set applies. */
  readonly usernames: readonly string[];
  readonly uids: readonly string[];
  /** The values of all headers apply. */
  readonly groups: readonly string[];
  /** The rest of a header's name is the key, percent-encoded. */
  readonly extraPrefixes: readonly string[];
}

export interface RequestHeaderOptions {
  readonly caPem: string;
  readonly clock: Clock;
  /** Allowed common names of proxies; empty allows all certificates of the CA. */
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
    usernames: toLowerCase(options.names.usernames),
    uids: toLowerCase(options.names.uids),
    groups: toLowerCase(options.names.groups),
    extraPrefixes: toLowerCase(options.names.extraPrefixes),
  };
  const verifier = new ClientVerifier(options.caPem, options.clock, ({ commonName }) => {
    if (allowedNames.length === 0 || allowedNames.includes(commonName)) return true;
    throw new InvalidCredentialsError(`x509: subject with cn=${JSON.stringify(commonName)} is not in the allowed list`);
  });
  return {
    authenticate: (credentials) =>
      verifier.verify(credentials) === undefined ? undefined : readUser(credentials, names),
    setAuthorities: (caPem) => verifier.setAuthorities(caPem),
  };
}

function readUser(credentials: Credentials, names: RequestHeaderNames): UserInfo | undefined {
  const values = (name: string): readonly string[] =>
    (credentials.headerValues?.(name) ?? []).filter((value) => value !== "");
  const first = (from: readonly string[]): string => from.flatMap(values)[0] ?? "";
  const name = first(names.usernames);
  if (name === "") return undefined;
  // A Map, since a proxy may send any key.
  const extra = new Map<string, readonly string[]>();
  for (const header of credentials.headerNames?.() ?? []) {
    const prefix = names.extraPrefixes.find((each) => header.startsWith(each));
    if (prefix === undefined) continue;
    const key = unescapeKey(header.slice(prefix.length));
    extra.set(key, [...(extra.get(key) ?? []), ...(credentials.headerValues?.(header) ?? [])]);
  }
  return { name, uid: first(names.uids), groups: names.groups.flatMap(values), extra: Object.fromEntries(extra) };
}

function toLowerCase(names: readonly string[]): readonly string[] {
  return names.map((name) => name.toLowerCase());
}

/** Keys are percent-encoded, but invalid encodings are kept as they are, as in Kubernetes. */
function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
