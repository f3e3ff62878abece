/** Runs one credential provider plugin: writes the request to its stdin and reads the response from its stdout. */
import { decode } from "../../schema/decode/decode.ts";
import { duration, map, object, optional, pointer, required, string } from "../../schema/define.ts";
import { isPlainObject } from "../../schema/value/plain-object.ts";
import { parseDuration } from "../../schema/value/time.ts";
import { runWithStdin } from "../../std/process/run-with-stdin.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { RegistryAuths } from "./docker-config.ts";

const response = object("credentialprovider.svclet.svc.io/v1.CredentialProviderResponse", {
  cacheKeyType: required(0, string),
  cacheDuration: pointer(0, duration),
  auth: optional(
    0,
    map(
      object("credentialprovider.svclet.svc.io/v1.AuthConfig", {
        username: required(0, string),
        password: required(0, string),
      }),
    ),
  ),
});

export interface PluginProgram {
  readonly path: string;
  readonly args: readonly string[];
  /** Added to the agent's environment; these variables have precedence. */
  readonly env: Readonly<Record<string, string>>;
  /** Of the request and of the response: `credentialprovider.kubelet.k8s.io/v1`. */
  readonly apiVersion: string;
}

export interface PluginRequest {
  /** The repository, without tag and digest. */
  readonly image: string;
  readonly serviceAccountToken?: string;
  readonly serviceAccountAnnotations?: Readonly<Record<string, string>>;
}

export interface PluginResponse {
  readonly cacheKeyType: "Image" | "Registry" | "Global";
  /** Undefined: the duration in the configuration. */
  readonly cacheMs: number | undefined;
  readonly auths: RegistryAuths;
}

const TIMEOUT_MS = 60_000;
const OUTPUT_BYTES_MAX = 4 * 1024 * 1024;

/** Rejects without the plugin's output, which contains secrets. The program has exited in any case. */
export async function runPlugin(
  program: PluginProgram,
  request: PluginRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<PluginResponse> {
  const { path: command, args, env, apiVersion } = program;
  const input = `${JSON.stringify({ kind: "CredentialProviderRequest", apiVersion, ...request })}\n`;
  try {
    const limits = { timeoutMs: TIMEOUT_MS, bytesMax: OUTPUT_BYTES_MAX };
    return parseResponse(await runWithStdin({ command, args, env }, input, limits, clock, signal), apiVersion);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new Error(`error execing credential provider plugin ${command} for image ${request.image}: ${why}`, {
      cause,
    });
  }
}

/** Throws when the response is invalid or not of the expected version. */
export function parseResponse(text: string, expected: string): PluginResponse {
  const value = parseJson(text);
  const { apiVersion = "", kind = "", ...members } = value;
  if (kind !== "CredentialProviderResponse") {
    throw new Error(`failed to decode ${JSON.stringify(kind)} (wrong Kind)`);
  }
  if (apiVersion !== expected) {
    throw new Error(
      "apiVersion from credential plugin response did not match expected apiVersion:" +
        `${expected}, actual apiVersion:${String(apiVersion)}`,
    );
  }
  const { value: decoded, errors } = decode(response, members, { unknownFields: "drop" });
  const [error] = errors;
  if (error !== undefined) throw new Error(`error decoding credential provider plugin response: field ${error.path}`);
  const { cacheKeyType, cacheDuration } = decoded;
  if (cacheKeyType !== "Image" && cacheKeyType !== "Registry" && cacheKeyType !== "Global") {
    throw new Error(`credential provider plugin did not return a valid cacheKeyType: ${JSON.stringify(cacheKeyType)}`);
  }
  const nanos = cacheDuration === undefined ? undefined : parseDuration(cacheDuration);
  return {
    cacheKeyType,
    cacheMs: nanos === undefined ? undefined : Number(nanos / 1_000_000n),
    auths: new Map(Object.entries(decoded.auth ?? {})),
  };
}

/** Error texts do not quote the response, which contains secrets. */
function parseJson(text: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("error decoding credential provider plugin response: invalid JSON");
  }
  if (!isPlainObject(value)) throw new Error("error decoding credential provider plugin response: not a JSON object");
  return value;
}
