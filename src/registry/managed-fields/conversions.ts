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
  readonly #known = new Map<string, unknown>();

  constructor(converter: Converter) {
    this.#converter = converter;
  }

  /** `value` says nothing of what it is. Throws `Unconverted` where it is not known yet. */
  convert(value: object, from: Kind, to: Kind): unknown {
    const apiVersion = `${from.group}/${from.version}`;
    const asked: Asked = { object: { ...value, apiVersion, kind: from.kind }, to };
    const key = keyOf(asked);
    if (!this.#known.has(key)) throw new Unconverted(asked);
    return this.#known.get(key);
  }

  async add(asked: Asked): Promise<void> {
    const { object, to } = asked;
    const [converted] = await this.#converter.convert([object], to.version);
    const { apiVersion: _, kind: __, ...value } = converted!;
    this.#known.set(keyOf(asked), decode(to.schema, value, { unknownFields: "drop" }).value);
  }
}

interface Asked {
  readonly object: JsonObject;
  readonly to: Kind;
}

function keyOf({ object, to }: Asked): string {
  return `${to.version} ${JSON.stringify(object)}`;
}

class Unconverted extends Error {
  override readonly name = "Unconverted";
  readonly asked: Asked;

  constructor(asked: Asked) {
    super(`an object has not been converted to ${asked.to.version} yet`);
    this.asked = asked;
  }
}

/** What `work` comes to; at once where no webhook converts. It has no effects, and comes to the same each time. */
export function withConversions<T>(
  { converter }: Pick<Kind, "converter">,
  work: (conversions: Conversions | undefined) => T,
): MaybePromise<T> {
  return converter === undefined ? work(undefined) : repeated(new Conversions(converter), work);
}

async function repeated<T>(conversions: Conversions, work: (conversions: Conversions) => T): Promise<T> {
  for (;;) {
    try {
      return work(conversions);
    } catch (error) {
      if (!(error instanceof Unconverted)) throw error;
      await conversions.add(error.asked);
    }
  }
}
