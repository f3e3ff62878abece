/**
 * Conversions during the computation of managed fields. A computation reads the object in every version that a manager
 * has used, and finds these while it runs. With a conversion webhook it throws at the first missing conversion,
 * and starts again once the webhook has returned it.
 */

import type { Converter, JsonObject, Kind } from "../../api/kind.ts";
import { decode } from "../../schema/decode/decode.ts";
import { stringifyExact } from "../../schema/json/exact-numbers.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";
import { runInSlices, type Steps } from "../../std/async/steps.ts";

/** The conversions that one computation has so far. */
export class Conversions {
  readonly #converter: Converter;
  readonly #converted = new Map<string, unknown>();

  constructor(converter: Converter) {
    this.#converter = converter;
  }

  /** `value` has no apiVersion and kind. Throws `MissingConversion` when the webhook has not converted it yet. */
  convert(value: object, from: Kind, to: Kind): unknown {
    const apiVersion = `${from.group}/${from.version}`;
    const input: ConversionInput = { object: { ...value, apiVersion, kind: from.kind }, to };
    const key = keyOf(input);
    if (!this.#converted.has(key)) throw new MissingConversion(input);
    return this.#converted.get(key);
  }

  async add(input: ConversionInput): Promise<void> {
    const { object, to } = input;
    const [converted] = await this.#converter.convert([object], to.version);
    const { apiVersion: _, kind: __, ...value } = converted!;
    this.#converted.set(keyOf(input), decode(to.schema, value, { unknownFields: "drop" }).value);
  }
}

interface ConversionInput {
  readonly object: JsonObject;
  readonly to: Kind;
}

function keyOf({ object, to }: ConversionInput): string {
  return `${to.version} ${stringifyExact(object)}`;
}

class MissingConversion extends Error {
  override readonly name = "MissingConversion";
  readonly input: ConversionInput;

  constructor(input: ConversionInput) {
    super(`an object has not been converted to ${input.to.version} yet`);
    this.input = input;
  }
}

/**
 * Runs `compute`, again after each missing conversion: it must be free of side effects. Synchronous for small objects
 * without a webhook.
 */
export function withConversions<T>(
  { converter }: Pick<Kind, "converter">,
  compute: (conversions: Conversions | undefined) => Steps<T>,
): MaybePromise<T> {
  return converter === undefined
    ? runInSlices(compute(undefined))
    : retryWithConversions(new Conversions(converter), compute);
}

async function retryWithConversions<T>(
  conversions: Conversions,
  compute: (conversions: Conversions) => Steps<T>,
): Promise<T> {
  for (;;) {
    try {
      return await runInSlices(compute(conversions));
    } catch (error) {
      if (!(error instanceof MissingConversion)) throw error;
      await conversions.add(error.input);
    }
  }
}
