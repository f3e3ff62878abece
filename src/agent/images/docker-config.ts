/** Parses registry credentials in Docker's formats, from pull secrets and from files of the node. */
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { AuthConfig } from "../runtime/cri/image.ts";

/** By registry, in Docker's notation: `registry.example.com`, `https://index.docker.io/v1/`. */
export type RegistryAuths = ReadonlyMap<string, AuthConfig>;

/** `data` is a Secret's decoded data. Throws when it cannot be parsed. */
export function parsePullSecret(data: Readonly<Record<string, string>>): RegistryAuths {
  const modern = data[".dockerconfigjson"];
  const legacy = data[".dockercfg"];
  if (modern !== undefined) return parseDockerConfig(modern);
  return legacy === undefined ? new Map() : parseLegacyDockerConfig(legacy);
}

/** Parses a `config.json`. Throws when it is invalid. */
export function parseDockerConfig(text: string): RegistryAuths {
  return parseEntries(asObject(asObject(JSON.parse(text)).auths ?? {}));
}

/** Parses a `.dockercfg`. Throws when it is invalid. */
export function parseLegacyDockerConfig(text: string): RegistryAuths {
  return parseEntries(asObject(JSON.parse(text)));
}

function parseEntries(auths: Readonly<Record<string, unknown>>): RegistryAuths {
  return new Map(Object.entries(auths).map(([key, value]) => [key, parseAuth(asObject(value))]));
}

/** `auth` has precedence over `username` and `password`. */
function parseAuth(entry: Readonly<Record<string, unknown>>): AuthConfig {
  const pair =
    toText(entry.auth) === "" ? [toText(entry.username), toText(entry.password)] : splitAuth(toText(entry.auth));
  const [username = "", password = ""] = pair;
  const identityToken = toText(entry.identitytoken);
  const registryToken = toText(entry.registrytoken);
  return {
    ...(username === "" ? {} : { username }),
    ...(password === "" ? {} : { password }),
    ...(identityToken === "" ? {} : { identityToken }),
    ...(registryToken === "" ? {} : { registryToken }),
  };
}

/** Error texts do not quote the value, which is a secret. */
function splitAuth(auth: string): readonly string[] {
  const plain = Buffer.from(auth, "base64").toString("utf8");
  const colon = plain.indexOf(":");
  if (colon < 0) throw new Error("unable to parse auth field, must be formatted as base64(username:password)");
  return [plain.slice(0, colon), plain.slice(colon + 1)];
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  if (!isPlainObject(value)) throw new Error("the registry credentials are not a JSON object");
  return value;
}
