/** The `CredentialProviderResponse` of a plugin. Errors do not quote it, because it contains secrets. */
import * as z from "zod/mini";
import { parseDuration } from "../../schema/value/time.ts";
import type { RegistryAuths } from "./docker-config.ts";

export interface PluginResponse {
  readonly cacheKeyType: "Image" | "Registry" | "Global";
  /** Undefined: the duration in the configuration. */
  readonly cacheMs: number | undefined;
  readonly auths: RegistryAuths;
}

const text = z.pipe(
  z.optional(z.nullable(z.string())),
  z.transform((value) => value ?? ""),
);
const duration = z.string().check(z.refine((value) => parseDuration(value) !== undefined));

const response = z.object({
  cacheKeyType: text,
  cacheDuration: z.optional(z.nullable(duration)),
  auth: z.optional(z.nullable(z.record(z.string(), z.object({ username: text, password: text })))),
});

const PREFIX = "error decoding credential provider plugin response:";

/** Throws when the response is invalid or not of the expected version. */
export function parseResponse(json: string, expected: string): PluginResponse {
  const { apiVersion = "", kind = "", ...members } = parseObject(json);
  if (kind !== "CredentialProviderResponse") throw new Error(`failed to decode ${JSON.stringify(kind)} (wrong Kind)`);
  if (apiVersion !== expected) {
    throw new Error(
      "apiVersion from credential plugin response did not match expected apiVersion:" +
        `${expected}, actual apiVersion:${String(apiVersion)}`,
    );
  }
  const parsed = response.safeParse(members);
  if (!parsed.success) throw new Error(`${PREFIX} field ${parsed.error.issues[0]?.path.join(".")}`);
  const { cacheKeyType, cacheDuration, auth } = parsed.data;
  if (cacheKeyType !== "Image" && cacheKeyType !== "Registry" && cacheKeyType !== "Global") {
    throw new Error(`credential provider plugin did not return a valid cacheKeyType: ${JSON.stringify(cacheKeyType)}`);
  }
  const nanos = parseDuration(cacheDuration ?? "");
  return {
    cacheKeyType,
    cacheMs: nanos === undefined ? undefined : Number(nanos / 1_000_000n),
    auths: new Map(Object.entries(auth ?? {})),
  };
}

function parseObject(json: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new Error(`${PREFIX} invalid JSON`);
  }
  const parsed = z.record(z.string(), z.unknown()).safeParse(value);
  if (!parsed.success) throw new Error(`${PREFIX} not a JSON object`);
  return parsed.data;
}
