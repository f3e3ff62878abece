/** Registry credentials as Docker wrote them over time: in pull secrets, and in files of the node. */
import { isPlainObject } from "../../schema/value/plain-object.ts";
import type { AuthConfig } from "../runtime/cri/image.ts";

/** By what they are for, in Docker's spelling: `registry.example.com`, `https://index.docker.io/v1/`. */
export type RegistryAuths = ReadonlyMap<string, AuthConfig>;

/** `data` is a Secret's decoded data. Throws when the document in it cannot be read. */
export function parsePullSecret(data: Readonly<Record<string, string>>): RegistryAuths {
  const modern = data[".dockerconfigjson"];
  const legacy = data[".dockercfg"];
  if (modern !== undefined) return parseDockerConfig(modern);
  return legacy === undefined ? new Map() : parseLegacyDockerConfig(legacy);
}

/** Of a `config.json`. Throws when it cannot be read. */
export function parseDockerConfig(text: string): RegistryAuths {
  return parseEntries(asObject(asObject(JSON.parse(text)).auths ?? {}));
}

/** Of a `.dockercfg`. Throws when it cannot be read. */
export function parseLegacyDockerConfig(text: string): RegistryAuths {
  return parseEntries(asObject(JSON.parse(text)));
}

function parseEntries(auths: Readonly<Record<string, unknown>>): RegistryAuths {
  return new Map(Object.entries(auths).map(([key, value]) => [key, parseAuth(asObject(value))]));
}

/** `auth` counts for more than the name and the password beside it. */
function parseAuth(entry: Readonly<Record<string, unknown>>): AuthConfig {
  const own =
    toText(entry.auth) === "" ? [toText(entry.username), toText(entry.password)] : splitAuth(toText(entry.auth));
  const [username = "", password = ""] = own;
  const identityToken = toText(entry.identitytoken);
  const registryToken = toText(entry.registrytoken);
  return {
    ...(username === "" ? {} : { username }),
    ...(password === "" ? {} : { password }),
    ...(identityToken === "" ? {} : { identityToken }),
    ...(registryToken === "" ? {} : { registryToken }),
  };
}

/** What is wrong is said without what it says: it is a secret. */
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
