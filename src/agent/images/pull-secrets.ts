/** Registry credentials from `imagePullSecrets`, in both formats that Docker wrote over time. */
import type { AuthConfig } from "../runtime/cri/image.ts";
import type { ImageReference } from "./reference.ts";

interface DockerEntry {
  readonly username?: unknown;
  readonly password?: unknown;
  readonly auth?: unknown;
  readonly identitytoken?: unknown;
  readonly registrytoken?: unknown;
}

/** `data` is a Secret's decoded data. Throws when the document in it cannot be read. */
export function credentialsIn(data: Readonly<Record<string, string>>): ReadonlyMap<string, AuthConfig> {
  const modern = data[".dockerconfigjson"];
  const legacy = data[".dockercfg"];
  if (modern !== undefined) {
    const document = asObject(JSON.parse(modern));
    return entries(asObject(document.auths));
  }
  return legacy === undefined ? new Map() : entries(asObject(JSON.parse(legacy)));
}

/** The most specific entry first. A pull tries them in this order, then without credentials. */
export function matching(all: ReadonlyMap<string, AuthConfig>, reference: ImageReference): readonly AuthConfig[] {
  const target = `${reference.registry}/${reference.repository}`;
  return [...all]
    .filter(([key]) => matches(key, reference.registry, target))
    .sort(([a], [b]) => b.length - a.length)
    .map(([, auth]) => auth);
}

function matches(key: string, registry: string, target: string): boolean {
  const [host = "", ...path] = key
    .replace(/^https?:\/\//, "")
    .replace(/\/(v[12])?\/?$/, "")
    .split("/");
  const canonical = host === "index.docker.io" || host === "registry-1.docker.io" ? "docker.io" : host;
  if (!hostMatches(canonical, registry)) return false;
  const prefix = path.length === 0 ? "" : `${registry}/${path.join("/")}`;
  return prefix === "" || target === prefix || target.startsWith(`${prefix}/`);
}

/** `*.example.com` stands for one label. */
function hostMatches(pattern: string, host: string): boolean {
  const wanted = pattern.split(".");
  const given = host.split(".");
  return wanted.length === given.length && wanted.every((part, index) => part === "*" || part === given[index]);
}

function entries(auths: Readonly<Record<string, unknown>>): ReadonlyMap<string, AuthConfig> {
  return new Map(Object.entries(auths).map(([key, value]) => [key, authOf(asObject(value))]));
}

function authOf(entry: DockerEntry): AuthConfig {
  const plain = typeof entry.auth === "string" ? Buffer.from(entry.auth, "base64").toString("utf8") : "";
  const colon = plain.indexOf(":");
  const username = typeof entry.username === "string" ? entry.username : plain.slice(0, Math.max(colon, 0));
  const password = typeof entry.password === "string" ? entry.password : colon < 0 ? "" : plain.slice(colon + 1);
  return {
    ...(username === "" ? {} : { username }),
    ...(password === "" ? {} : { password }),
    ...(typeof entry.identitytoken === "string" ? { identityToken: entry.identitytoken } : {}),
    ...(typeof entry.registrytoken === "string" ? { registryToken: entry.registrytoken } : {}),
  };
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error("the registry credentials are not a JSON object");
  }
  return value as Readonly<Record<string, unknown>>;
}
