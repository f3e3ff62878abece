import { X509Certificate } from "node:crypto";
import { configMapKind } from "../../api/core/config-map/kind.ts";
import type { ConfigMap } from "../../api/core/config-map/schema.ts";
import type { Registries } from "../../registry/registries.ts";
import type { Clock } from "../../std/time/clock.ts";
import type { ClientAuthorities } from "../authentication/authenticators.ts";
import { ensure, systemScope } from "./ensure.ts";

export const TRUST_CONFIG_MAP = "extension-apiserver-authentication";
/** The namespaces that Kubernetes' extension servers and the project's read the ConfigMap from. */
export const TRUST_NAMESPACES = ["kube-system", "svc-system"] as const;

type Data = Readonly<Record<string, string>>;

/** Publishes the CAs of client certificates, so that extension servers authenticate users as this server does. */
export async function publishAuthenticationTrust(
  registries: Registries,
  authorities: ClientAuthorities,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const own = trustData(authorities);
  if (Object.keys(own).length === 0) return;
  for (const namespace of TRUST_NAMESPACES) {
    const wanted: ConfigMap = { metadata: { name: TRUST_CONFIG_MAP, namespace }, data: own };
    const correct = (found: ConfigMap): ConfigMap | undefined => {
      const data = mergeData(found.data ?? {}, own, clock.now());
      return Object.entries(data).every(([key, value]) => found.data?.[key] === value) ? undefined : { ...found, data };
    };
    const scope = systemScope(namespace, signal);
    await ensure(registries.of(configMapKind), scope, wanted, correct);
  }
}

function trustData(authorities: ClientAuthorities): Data {
  const clients = authorities.clientCa();
  const proxies = authorities.requestHeader();
  return {
    ...(clients === undefined ? {} : { "client-ca-file": clients }),
    ...(proxies === undefined
      ? {}
      : {
          "requestheader-client-ca-file": proxies.ca,
          "requestheader-allowed-names": JSON.stringify(proxies.allowedNames),
          "requestheader-username-headers": JSON.stringify(proxies.usernames),
          "requestheader-group-headers": JSON.stringify(proxies.groups),
          ...(proxies.uids.length === 0 ? {} : { "requestheader-uid-headers": JSON.stringify(proxies.uids) }),
          "requestheader-extra-headers-prefix": JSON.stringify(proxies.extraPrefixes),
        }),
  };
}

/** Merges with the data that other servers of the cluster wrote, without expired certificates. */
function mergeData(found: Data, own: Data, now: number): Data {
  const data: Record<string, string> = { ...found };
  for (const [key, value] of Object.entries(own)) {
    const theirs = found[key];
    if (theirs === undefined || theirs === value) data[key] = value;
    else data[key] = key.endsWith("-ca-file") ? joinBundles(theirs, value, now) : joinLists(theirs, value);
  }
  return data;
}

function joinBundles(theirs: string, ours: string, now: number): string {
  const blocks = `${theirs}\n${ours}`.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const unexpired = blocks.filter((block) => isUnexpired(block, now)).map((block) => `${block}\n`);
  return [...new Set(unexpired)].join("");
}

function isUnexpired(block: string, now: number): boolean {
  try {
    return new X509Certificate(block).validToDate.getTime() > now;
  } catch {
    return false;
  }
}

function joinLists(theirs: string, ours: string): string {
  const [first, second] = [theirs, ours].map(listOf);
  // An empty list of allowed names allows every name; merged with another list it allows fewer.
  return JSON.stringify([...new Set([...first!, ...second!])]);
}

function listOf(json: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(json);
    return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
  } catch {
    return [];
  }
}
