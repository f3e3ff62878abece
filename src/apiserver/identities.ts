/** Who may be who: client certificates, tokens of a file, tokens of this process' own components, and strangers. */
import { readFile } from "node:fs/promises";
import { anonymousAuthenticator } from "../auth/authn/anonymous.ts";
import { tokenAuthenticator } from "../auth/authn/token.ts";
import { parseTokenFile } from "../auth/authn/token-file.ts";
import { unionAuthenticator } from "../auth/authn/union.ts";
import { x509Authenticator } from "../auth/authn/x509.ts";
import type { Authenticator, UserInfo } from "../auth/user.ts";
import type { Clock } from "../std/clock.ts";
import type { AuthenticationConfig } from "./config.ts";

export interface Identities {
  readonly authenticate: Authenticator;
  /** A random token that stands for a component of this process. */
  loopbackToken(user: UserInfo): string;
  /** PEM; clients that connect are told of it. */
  readonly clientCa: string | undefined;
}

/** Throws, naming the file, for one that cannot be read or makes no sense. */
export async function identitiesOf(config: AuthenticationConfig, clock: Clock): Promise<Identities> {
  const clientCa = await contentOf("--client-ca-file", config.clientCaFile);
  const tokens = tokenAuthenticator();
  const rows = (await contentOf("--token-auth-file", config.tokenFile)) ?? "";
  for (const { token, user } of parseTokenFile(config.tokenFile ?? "", rows)) tokens.add(token, user);
  const authenticators = [
    ...(clientCa === undefined ? [] : [x509Authenticator({ caPem: clientCa, clock }).authenticate]),
    tokens.authenticate,
  ];
  return {
    authenticate: unionAuthenticator(authenticators, config.anonymous ? anonymousAuthenticator() : undefined),
    loopbackToken: (user) => tokens.issue(user),
    clientCa,
  };
}

/** Undefined when no file is named. */
async function contentOf(flag: string, path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "there is no such file" : String(cause);
    throw new Error(`Cannot read ${flag}="${path}": ${why}`, { cause });
  }
}
