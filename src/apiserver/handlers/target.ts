/** What a route points at, and what its handlers are given. */
import type { AdmissionChain } from "../../admission/chain/chain.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { Scheme } from "../../api/scheme.ts";
import type { HttpResponse } from "../../http/message.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Scope } from "../../registry/scope.ts";
import type { EscalationCheck } from "../../registry/write/request.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type RequestContext, userOf } from "../request/request-context.ts";
import type { ResponseOptions } from "../responses/object-response.ts";
import { negotiateRepresentation } from "../responses/representation.ts";
import { parseIncludeObject } from "../responses/table.ts";
import { typeMetaOf } from "../responses/type-meta.ts";
import type { Expected } from "./body.ts";

/** One resource in one spelling of its group. */
export interface ResourceTarget<T extends ApiObject = ApiObject> {
  readonly kind: Kind<T>;
  /** The spelling that this route answers in. */
  readonly group: string;
  readonly registry: Registry<T>;
  readonly settings: ResourceSettings;
}

export interface ResourceSettings {
  /** All the kinds there are. */
  readonly scheme: Scheme;
  /** The `CBORServingAndStorage` feature gate. */
  readonly cbor: boolean;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly minWatchMs: number;
  /** The `WatchList` feature gate. */
  readonly watchList: boolean;
  /** Aborts when the server stops: watches end. */
  readonly stopping: AbortSignal;
  /** Who is asked about writes. */
  readonly admission: AdmissionChain;
  /** Throws a 403 when who may update or patch the object may not create it. */
  readonly authorizeCreate: (context: RequestContext) => Promise<void>;
  /** For kinds that give something: throws when the object, as the request names it, gives what its writer has not. */
  readonly escalationCheckFor: (kind: Kind, named: string) => EscalationCheck | undefined;
}

export type ResourceHandler = (
  target: ResourceTarget,
  context: RequestContext,
  params: Readonly<Record<string, string>>,
) => Promise<HttpResponse>;

export function scopeOf(
  target: ResourceTarget,
  context: RequestContext,
  params: Readonly<Record<string, string>>,
): Scope {
  return {
    namespace: params.namespace ?? "",
    group: target.group,
    user: userOf(context),
    // Asked for late or never: making it costs more than responseOptions from the cache.
    get signal() {
      return context.signal;
    },
  };
}

export function expectedBodyOf({ kind, group, settings }: ResourceTarget): Expected {
  const { scheme, cbor } = settings;
  return { group, version: kind.version, kind: kind.kind, schema: kind.schema, custom: kind.custom, scheme, cbor };
}

export function responseOptionsOf(
  target: ResourceTarget,
  context: RequestContext,
  shape: "object" | "list" | "watch",
): ResponseOptions {
  const { kind, settings } = target;
  const custom = kind.custom === true;
  const representation = negotiateRepresentation(context, { shape, custom, cbor: settings.cbor });
  const includeObject = representation.as === "table" ? parseIncludeObject(context.info.query) : "None";
  return {
    typeMeta: typeMetaOf(kind, target.group),
    representation,
    table: { includeObject, now: settings.clock.now() },
  };
}
