/** The kinds every server has. Adding a kind is adding it here. */
import { leaseKind } from "./coordination/lease-kind.ts";
import { configMapKind } from "./core/config-map-kind.ts";
import { eventKind } from "./core/event-kind.ts";
import { namespaceKind } from "./core/namespace-kind.ts";
import { nodeKind } from "./core/node-kind.ts";
import { podKind } from "./core/pod-kind.ts";
import { secretKind } from "./core/secret-kind.ts";
import { serviceAccountKind } from "./core/service-account-kind.ts";
import { eventsV1EventKind } from "./events/event-kind.ts";
import type { Kind } from "./kind.ts";
import { Scheme } from "./scheme.ts";

const builtinKinds: readonly Kind[] = [
  configMapKind,
  eventKind,
  namespaceKind,
  nodeKind,
  podKind,
  secretKind,
  serviceAccountKind,
  leaseKind,
  eventsV1EventKind,
];

export function builtinScheme(): Scheme {
  const scheme = new Scheme();
  for (const kind of builtinKinds) scheme.register(kind);
  return scheme;
}
