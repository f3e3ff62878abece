/** EventRateLimit: limits the rate of Event writes for the server, a namespace, a user, or a source and object. */
import type { Event } from "../../../api/core/event/schema.ts";
import type { Event as NewEvent } from "../../../api/events/event/schema.ts";
import { StatusError } from "../../../api/status.ts";
import { int32, list, object, optional, required, string } from "../../../schema/define.ts";
import type { Infer } from "../../../schema/schema.ts";
import {
  type FieldError,
  invalidField,
  notSupported,
  renderFieldError,
  unquoted,
} from "../../../schema/validation/field-error.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { AdmissionRequest } from "../../chain/attributes.ts";
import { type ConfigurationIdentity, decodeConfiguration } from "../../chain/configuration.ts";
import type { PluginConfiguration, PluginDeps } from "../../chain/factory.ts";
import type { AdmissionPlugin } from "../../chain/plugin.ts";

const IDENTITY: ConfigurationIdentity = {
  group: "eventratelimit.admission.k8s.io",
  versions: ["v1alpha1"],
  kinds: ["Configuration"],
};
const TYPES = ["Namespace", "Server", "SourceAndObject", "User"];
/** The default number of keys with a bucket. */
const CACHE_SIZE = 4096;

const limitSchema = object("eventratelimit/v1alpha1.Limit", {
  type: required(0, string),
  qps: required(0, int32),
  burst: required(0, int32),
  cacheSize: optional(0, int32),
});
type Limit = Infer<typeof limitSchema>;
const schema = object("eventratelimit/v1alpha1.Configuration", {
  apiVersion: optional(0, string),
  kind: optional(0, string),
  limits: required(0, list(limitSchema)),
});

/** Throws an error in one sentence, for the operator. */
export function eventRateLimit({ clock, configuration }: Pick<PluginDeps, "clock" | "configuration">): AdmissionPlugin {
  const limits = limitsOf(configuration).map((limit) => new RateLimit(limit, clock));
  return {
    name: "EventRateLimit",
    handles: ({ kind, subresource, operation }) =>
      kind.kind === "Event" && subresource === "" && (operation === "CREATE" || operation === "UPDATE"),
    validate(request) {
      if (request.dryRun) return;
      const reached = limits.flatMap((limit) => limit.takeToken(request) ?? []);
      if (reached.length === 0) return;
      const text = reached.length === 1 ? `${reached[0]}` : `[${reached.join(", ")}]`;
      throw new StatusError(429, "TooManyRequests", `Too many requests: ${text}`);
    },
  };
}

function limitsOf(configuration: PluginConfiguration | undefined): readonly Limit[] {
  if (configuration === undefined) {
    throw new Error("Cannot use EventRateLimit: --admission-control-config-file must name a file with its limits");
  }
  const { limits } = decodeConfiguration(configuration, IDENTITY, schema);
  const errors = validate(limits);
  if (errors.length === 0) return limits;
  const texts = errors.map(
    (error) => `${configuration.locationOf(error.field)}: ${error.field}: ${renderFieldError(error)}`,
  );
  throw new Error(`Cannot use ${texts.join("; ")}`);
}

function validate(limits: readonly Limit[]): readonly FieldError[] {
  if (limits.length === 0)
    return [invalidField("limits", unquoted("[]eventratelimit.Limit(nil)"), "must not be empty")];
  return limits.flatMap(({ type, qps, burst, cacheSize = 0 }, index) => {
    const at = `limits[${index}]`;
    return [
      ...(TYPES.includes(type) ? [] : [notSupported(`${at}.type`, type, TYPES)]),
      ...(burst > 0 ? [] : [invalidField(`${at}.burst`, burst, "must be positive")]),
      ...(qps > 0 ? [] : [invalidField(`${at}.qps`, qps, "must be positive")]),
      ...(cacheSize >= 0 ? [] : [invalidField(`${at}.cacheSize`, cacheSize, "must not be negative")]),
    ];
  });
}

interface Bucket {
  tokens: number;
  /** The monotonic time of the last refill. */
  refilledAt: number;
}

/** A token bucket for each key; the least recently used key is evicted when the cache is full. */
class RateLimit {
  readonly #limit: Limit;
  readonly #clock: Clock;
  readonly #sizeMax: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limit: Limit, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
    this.#sizeMax = limit.cacheSize || CACHE_SIZE;
  }

  /** Takes a token. Returns the message for a reached limit. */
  takeToken(request: AdmissionRequest): string | undefined {
    const { type } = this.#limit;
    const key = keyOf(type, request);
    if (this.#take(key)) return undefined;
    return `limit reached on type ${type} for key ${key}`;
  }

  #take(key: string): boolean {
    const { qps, burst } = this.#limit;
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(key) ?? { tokens: burst, refilledAt: now };
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.refilledAt) / 1000) * qps);
    bucket.refilledAt = now;
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > this.#sizeMax) {
      const [oldest] = this.#buckets.keys();
      this.#buckets.delete(oldest!);
    }
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }
}

function keyOf(type: string, request: AdmissionRequest): string {
  switch (type) {
    case "Namespace":
      return request.namespace;
    case "User":
      return request.user.name;
    case "SourceAndObject":
      return sourceAndObject(request);
    default:
      return "";
  }
}

function sourceAndObject({ object }: AdmissionRequest): string {
  const { source, involvedObject } = object as Event;
  const { deprecatedSource, regarding } = object as NewEvent;
  const origin = source ?? deprecatedSource;
  const involved = involvedObject ?? regarding;
  const parts = [origin?.component, origin?.host, involved?.kind, involved?.namespace, involved?.name, involved?.uid];
  return [...parts, involved?.apiVersion].map((part) => part ?? "").join("");
}
