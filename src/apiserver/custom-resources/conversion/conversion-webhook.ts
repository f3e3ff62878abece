/**
 * Converts objects between the versions of a definition through its webhook: batches of at most 500 objects of other
 * versions are sent in a ConversionReview, validated and returned at their index.
 */

import { createCustomKind } from "../../../api/apiextensions/custom-resource/kind.ts";
import type { RuleObserver } from "../../../api/apiextensions/custom-resource/rule-evaluation.ts";
import type {
  CustomResourceDefinition,
  WebhookConversion,
} from "../../../api/apiextensions/custom-resource-definition/schema.ts";
import type { Converter, JsonObject, Kind } from "../../../api/kind.ts";
import { StatusError } from "../../../api/status.ts";
import type { WebhookClient } from "../../../client/webhook/webhook-client.ts";
import { stringifyExact } from "../../../schema/json/exact-numbers.ts";
import { areLong } from "../../../schema/value/check-values.ts";
import { TimeSlice } from "../../../std/async/time-slice.ts";
import { type RandomSource, randomUuid } from "../../../std/crypto/random.ts";
import type { Clock } from "../../../std/time/clock.ts";
import type { ConversionFailure, ConversionMetrics } from "./conversion-metrics.ts";
import {
  encodeConversionReview,
  InvalidConversionResponse,
  parseConversionResponse,
  selectReviewVersion,
  validateConvertedObject,
} from "./conversion-review.ts";

export interface ConversionDeps {
  readonly client: WebhookClient;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly metrics: ConversionMetrics;
  /** Measures the validation rules of the kinds. */
  readonly rules?: RuleObserver | undefined;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
}

/** Kubernetes' timeout, which cannot be configured. */
const TIMEOUT_MS = 30_000;
/** The maximum content of one review. A larger object is sent alone. */
const OBJECTS_MAX = 500;
const BYTES_MAX = 4 * 2 ** 20;

/** Undefined for a definition without a conversion webhook. */
export function createConversionWebhook(
  definition: CustomResourceDefinition,
  deps: ConversionDeps,
): ConversionWebhook | undefined {
  const { strategy, webhook } = definition.spec.conversion ?? {};
  return strategy === "Webhook" && webhook !== undefined ? new ConversionWebhook(definition, webhook, deps) : undefined;
}

export class ConversionWebhook implements Converter {
  readonly #definition: CustomResourceDefinition;
  readonly #webhook: WebhookConversion;
  readonly #deps: ConversionDeps;
  readonly #kinds = new Map<string, Kind>();

  constructor(definition: CustomResourceDefinition, webhook: WebhookConversion, deps: ConversionDeps) {
    this.#definition = definition;
    this.#webhook = webhook;
    this.#deps = deps;
  }

  get storageKind(): Kind {
    const { versions } = this.#definition.spec;
    return this.kindOf((versions.find(({ storage }) => storage) ?? versions[0]!).name)!;
  }

  kindOf(version: string): Kind | undefined {
    const known = this.#kinds.get(version);
    if (known !== undefined || !this.#definition.spec.versions.some(({ name }) => name === version)) return known;
    const kind = createCustomKind(this.#definition, version, this, this.#deps.rules);
    this.#kinds.set(version, kind);
    return kind;
  }

  async convert(objects: readonly JsonObject[], version: string): Promise<readonly JsonObject[]> {
    const result = [...objects];
    const indexesByVersion = Map.groupBy(objects.keys(), (index) => versionOf(objects[index]!));
    for (const [from, ofVersion] of indexesByVersion) {
      if (from === version) continue;
      const [empty, full] = partition(ofVersion, (index) => isEmpty(objects[index]!));
      for (const index of empty) result[index] = { ...objects[index], apiVersion: this.#apiVersion(version) };
      const serialized = full.map((index) => ({ index, object: this.#serialize(objects[index]!, from) }));
      for (const batch of batches(serialized)) {
        const made = await this.#convertBatch(batch, from, version);
        for (const [i, { index }] of batch.entries()) result[index] = made[i]!;
      }
    }
    return result;
  }

  /** With the group name of the definition, which the webhook expects. */
  #apiVersion(version: string): string {
    return `${this.#definition.spec.group}/${version}`;
  }

  #serialize(object: JsonObject, version: string): SerializedObject {
    const serialized = { ...object, apiVersion: this.#apiVersion(version) };
    return { object: serialized, text: stringifyExact(serialized) };
  }

  async #convertBatch(batch: readonly IndexedObject[], from: string, to: string): Promise<readonly JsonObject[]> {
    const { clock, metrics } = this.#deps;
    const start = clock.monotonic();
    let failure: ConversionFailure | undefined = "conversion_webhook_call_failure";
    try {
      const made = await this.#callWebhook(batch, to);
      failure = undefined;
      return made;
    } catch (error) {
      const { kind } = batch[0]!.object.object;
      const what = `conversion webhook for ${this.#apiVersion(from)}, Kind=${String(kind)}`;
      if (error instanceof InvalidConversionResponse) failure = error.failure;
      const why = error instanceof InvalidConversionResponse ? error.message : `failed: ${(error as Error).message}`;
      throw new StatusError(500, "", `${what} ${why}`, { cause: error });
    } finally {
      const seconds = (clock.monotonic() - start) / 1000;
      metrics.observe({ definition: this.#definition.metadata?.name ?? "", from, to, seconds, failure });
    }
  }

  async #callWebhook(batch: readonly IndexedObject[], to: string): Promise<readonly JsonObject[]> {
    const { client, random, stopping } = this.#deps;
    const { conversionReviewVersions, clientConfig } = this.#webhook;
    const review = selectReviewVersion(conversionReviewVersions);
    if (review === undefined) throw new Error("no recognized conversion review versions");
    const uid = randomUuid(random);
    const apiVersion = this.#apiVersion(to);
    const texts = batch.map(({ object }) => object.text);
    const body = await client.post(
      clientConfig ?? {},
      encodeConversionReview(review, uid, apiVersion, texts),
      TIMEOUT_MS,
      stopping,
    );
    const converted = parseConversionResponse(body, review, uid, batch.length);
    const count = batch.length;
    const slice = new TimeSlice();
    // To decode the response was a long step.
    if (areLong(converted)) await slice.end();
    const valid: JsonObject[] = [];
    for (const [index, { object }] of batch.entries()) {
      valid.push(validateConvertedObject(object.object, converted[index], apiVersion, { index, count }));
      await slice.yield();
    }
    return valid;
  }
}

interface SerializedObject {
  readonly object: JsonObject;
  readonly text: string;
}

interface IndexedObject {
  readonly index: number;
  readonly object: SerializedObject;
}

function* batches(all: readonly IndexedObject[]): Iterable<readonly IndexedObject[]> {
  let batch: IndexedObject[] = [];
  let bytes = 0;
  for (const placed of all) {
    const { length } = placed.object.text;
    if (batch.length === OBJECTS_MAX || (batch.length > 0 && bytes + length > BYTES_MAX)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(placed);
    bytes += length;
  }
  if (batch.length > 0) yield batch;
}

function partition<T>(all: readonly T[], isFirst: (one: T) => boolean): readonly [readonly T[], readonly T[]] {
  const { yes = [], no = [] } = Object.groupBy(all, (one) => (isFirst(one) ? "yes" : "no"));
  return [yes, no];
}

function versionOf({ apiVersion }: JsonObject): string {
  const text = typeof apiVersion === "string" ? apiVersion : "";
  return text.slice(text.lastIndexOf("/") + 1);
}

/** An object with apiVersion and kind only is the same in every version. */
function isEmpty(object: JsonObject): boolean {
  return Object.keys(object).every((member) => member === "apiVersion" || member === "kind");
}
