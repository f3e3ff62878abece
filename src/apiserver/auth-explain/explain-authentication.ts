/** Runs the authenticators of the configuration on credentials, and records what each decided. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { nodeKind } from "../../api/core/node/kind.ts";
import { podKind } from "../../api/core/pod/kind.ts";
import { secretKind } from "../../api/core/secret/kind.ts";
import { serviceAccountKind } from "../../api/core/service-account/kind.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { UserInfo } from "../../auth/user.ts";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock as clock } from "../../std/time/clock.ts";
import type { AttemptObserver } from "../authentication/attempts.ts";
import { openAuthenticators } from "../authentication/authenticators.ts";
import type { AuthenticationConfig } from "../config/config.ts";
import { type ClientCredentials, findCertificateProblems, unverifiedClaims } from "./credentials.ts";
import type { ObjectSource } from "./objects.ts";

interface Attempt {
  readonly name: string;
  readonly outcome: string;
}

export interface AuthenticationResult {
  readonly attempts: readonly Attempt[];
  /** Undefined: the request is refused with 401. */
  readonly user: UserInfo | undefined;
}

const KINDS = { ServiceAccount: serviceAccountKind, Pod: podKind, Secret: secretKind, Node: nodeKind };

/** Rejects with a sentence for an unusable configuration. */
export async function explainAuthentication(
  config: AuthenticationConfig,
  credentials: ClientCredentials,
  objects: ObjectSource | undefined,
): Promise<AuthenticationResult> {
  const attempts: Attempt[] = [];
  const { serviceAccounts } = config;
  const { generatedKeyFile } = serviceAccounts;
  // The server would create a key.
  const hasKey = generatedKeyFile !== undefined && existsSync(generatedKeyFile);
  const readOnly = {
    ...config,
    serviceAccounts: { ...serviceAccounts, generatedKeyFile: hasKey ? generatedKeyFile : undefined },
  };
  await using authenticators = await openAuthenticators(readOnly, {
    clock,
    random: systemRandom,
    log: silentLogger,
    attempts: createObserver(attempts, config, credentials),
    findBoundObject: async ({ kind, namespace, name }): Promise<ApiObject | undefined> => {
      if (objects === undefined) throw new Error(`its ${kind} cannot be looked up: use --svcconfig`);
      return await objects.get(KINDS[kind] as Kind, namespace, name);
    },
  });
  const { authorization, certificates } = credentials;
  try {
    const user = await authenticators.authenticate({ certificates, authorization, path: "/" });
    if (user !== undefined && attempts.every(({ outcome }) => !outcome.startsWith("authenticated"))) {
      attempts.push({ name: "anonymous", outcome: "authenticated: there are no credentials" });
    } else if (user === undefined) {
      attempts.push({ name: "anonymous", outcome: "refused: anonymous requests are not allowed (--anonymous-auth)" });
    }
    return { attempts, user };
  } catch {
    // The attempts have the reasons.
    return { attempts, user: undefined };
  }
}

function createObserver(
  attempts: Attempt[],
  config: AuthenticationConfig,
  credentials: ClientCredentials,
): AttemptObserver {
  const record = async <T>(name: string, run: () => T | Promise<T>): Promise<T> => {
    try {
      const found = await run();
      const outcome = found === undefined ? await explainSkip(name, config, credentials) : "authenticated";
      attempts.push({ name, outcome });
      return found;
    } catch (error) {
      const details = await explainCertificate(name, config, credentials);
      attempts.push({ name, outcome: [`refused: ${(error as Error).message}`, ...details].join("\n") });
      throw error;
    }
  };
  return {
    requests: (name, authenticate) => (each) => record(name, () => authenticate(each)),
    tokens: (name, authenticate) => (token, audiences) => record(name, () => authenticate(token, audiences)),
  };
}

/** Why an authenticator does not apply to the credentials. */
async function explainSkip(
  name: string,
  config: AuthenticationConfig,
  credentials: ClientCredentials,
): Promise<string> {
  const claims = unverifiedClaims((credentials.authorization ?? "").replace(/^Bearer /, ""));
  const issuer = JSON.stringify(claims?.iss ?? "");
  switch (name) {
    case "request headers":
      return "skipped: no front proxy sent the request";
    case "client certificate":
      return "skipped: there is no client certificate";
    case "token file":
      return config.tokenFile === undefined
        ? "skipped: there is no --token-auth-file"
        : `skipped: the token is not in ${config.tokenFile}`;
    case "service account":
      return claims === undefined
        ? "skipped: the token is no JWT"
        : `skipped: the issuer ${issuer} is none of ${config.serviceAccounts.issuers.join(", ")}`;
    case "bootstrap token":
      return "skipped: the token does not have the form ID.SECRET of 6 and 16 characters";
    case "webhook":
      return "skipped: the webhook does not accept the token";
    default:
      return claims === undefined ? "skipped: the token is no JWT" : `skipped: the issuer of the token is ${issuer}`;
  }
}

async function explainCertificate(
  name: string,
  { clientCaFile, requestHeader }: AuthenticationConfig,
  { certificates }: ClientCredentials,
): Promise<readonly string[]> {
  const [leaf] = certificates;
  const file =
    name === "client certificate" ? clientCaFile : name === "request headers" ? requestHeader?.caFile : undefined;
  if (leaf === undefined || file === undefined) return [];
  return findCertificateProblems(leaf, await readFile(file, "utf8"), clock.now());
}
