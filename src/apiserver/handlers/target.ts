/** The target of a route: a resource with its registry and settings. */
import type { AdmissionChain } from "../../admission/chain/chain.ts";
import type { ApiObject, Kind } from "../../api/kind.ts";
import type { Scheme } from "../../api/scheme.ts";
import type { UserInfo } from "../../auth/user.ts";
import type { HttpResponse } from "../../http/message.ts";
import type { Registry } from "../../registry/registry.ts";
import type { Scope } from "../../registry/scope.ts";
import type { EscalationCheck } from "../../registry/write/request.ts";
import type { RandomSource } from "../../std/crypto/random.ts";
import type { Clock } from "../../std/time/clock.ts";
import { type RequestContext, userOf } from "../request/request-context.ts";
import type { ResponseOptions } from "../responses/object-response.ts";
import type { Negotiator, ResponseShape } from "../responses/representation.ts";
import { parseIncludeObject } from "../responses/table.ts";
import { typeMetaOf } from "../responses/type-meta.ts";
import type { ExpectedBody } from "./body-kind.ts";

/** A resource under one alias of its group. */
export interface ResourceTarget<T extends ApiObject = ApiObject> {
  readonly kind: Kind<T>;
  /** The alias in the path and in responses. */
  readonly group: string;
  readonly registry: Registry<T>;
  readonly settings: ResourceSettings;
}

export interface ResourceSettings {
  /** All kinds. */
  readonly scheme: Scheme;
  /** The `CBORServingAndStorage` feature gate. */
  readonly cbor: boolean;
  readonly negotiator: Negotiator;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly minWatchMs: number;
  /** The `WatchList` feature gate. */
  readonly watchList: boolean;
  /** Aborts when the server stops, which ends watches. */
  readonly stopping: AbortSignal;
  readonly admission: AdmissionChain;
  /** Throws a 403 when the user may not create the object, for updates and applies that create. */
  readonly authorizeCreate: (context: RequestContext) => Promise<void>;
  /** Throws a 403 when the user may not delete objects that cannot be read. */
  readonly authorizeUnsafeDelete: (context: RequestContext) => Promise<void>;
  /** The check that a writer of RBAC objects has the granted permissions; undefined for other kinds. */
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
  return new RequestScope(target.group, params.namespace ?? "", context);
}

/** A class, because a literal with a getter costs more, and one is created for each request. */
class RequestScope implements Scope {
  readonly namespace: string;
  readonly group: string;
  readonly user: UserInfo;
  readonly #context: RequestContext;

  constructor(group: string, namespace: string, context: RequestContext) {
    this.namespace = namespace;
    this.group = group;
    this.user = userOf(context);
    this.#context = context;
  }

  /** Lazy: creating the signal costs more than a read from the cache. */
  get signal(): AbortSignal {
    return this.#context.signal;
  }
}

export function expectedBodyOf({ kind, group, settings }: ResourceTarget): ExpectedBody {
  const { scheme, cbor } = settings;
  const { setDefaults } = kind.strategy;
  const { version, schema, custom } = kind;
  return { group, version, kind: kind.kind, schema, custom, setDefaults, scheme, cbor };
}

export function responseOptionsOf(
  target: ResourceTarget,
  context: RequestContext,
  shape: ResponseShape,
): ResponseOptions {
  const { kind, settings } = target;
  const representation = settings.negotiator.negotiate(context, shape, kind.custom === true);
  const includeObject = representation.as === "table" ? parseIncludeObject(context.info.query) : "None";
  return {
    typeMeta: typeMetaOf(kind, target.group),
    representation,
    table: { includeObject, now: settings.clock.now() },
    ...(context.audit?.recordsResponse === true ? { audit: context.audit } : {}),
  };
}
