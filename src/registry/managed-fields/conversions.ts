/**
 * Who manages which fields is reckoned in every version that a manager writes in, and which these are is only known on
 * the way. Where a webhook converts, the reckoning is done again each time something that it lacked is there.
 */
import type { Converter, JsonObject, Kind } from "../../api/kind.ts";
import { decode } from "../../schema/decode/decode.ts";
import type { MaybePromise } from "../../std/async/maybe-promise.ts";

/** What has been converted for one reckoning. */
export class Conversions {
  readonly #converter: Converter;
  readonly #converted = new Map<string, unknown>();

  constructor(converter: Converter) {
    this.#converter = converter;
  }

  /** `value` says nothing of what it is. Throws `Unconverted` where it is not known yet. */
  convert(value: object, from: Kind, to: Kind): unknown {
    const apiVersion = `${from.group}/${from.version}`;
    const asked: ConversionInput = { object: { ...value, apiVersion, kind: from.kind }, to };
    const key = keyOf(asked);
    if (!this.#converted.has(key)) throw new MissingConversion(asked);
    return this.#converted.get(key);
  }

  async add(asked: ConversionInput): Promise<void> {
    const { object, to } = asked;
    const [converted] = await this.#converter.convert([object], to.version);
    const { apiVersion: _, kind: __, ...value } = converted!;
    this.#converted.set(keyOf(asked), decode(to.schema, value, { unknownFields: "drop" }).value);
  }
}

interface ConversionInput {
  readonly object: JsonObject;
  readonly to: Kind;
}

function keyOf({ object, to }: ConversionInput): string {
  return `${to.version} ${JSON.stringify(object)}`;
}

class MissingConversion extends Error {
  override readonly name = "Unconverted";
  readonly input: ConversionInput;

  constructor(asked: ConversionInput) {
    super(`an object has not been converted to ${asked.to.version} yet`);
    this.input = asked;
  }
}

/** What `work` comes to; at once where no webhook converts. It has no effects, and comes to the same each time. */
export function withConversions<T>(
  { converter }: Pick<Kind, "converter">,
  work: (conversions: Conversions | undefined) => T,
): MaybePromise<T> {
  return converter === undefined ? work(undefined) : retryWithConversions(new Conversions(converter), work);
}

async function retryWithConversions<T>(conversions: Conversions, work: (conversions: Conversions) => T): Promise<T> {
  for (;;) {
    try {
      return work(conversions);
    } catch (error) {
      if (!(error instanceof MissingConversion)) throw error;
      await conversions.add(error.input);
    }
  }
}
