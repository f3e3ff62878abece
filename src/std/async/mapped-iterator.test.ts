import t from "tap";
import { MappedIterator } from "./mapped-iterator.ts";

function setUp(source: AsyncIterable<number>, map: (value: number) => string = String) {
  let ends = 0;
  const recover = (error: unknown) => `failed: ${(error as Error).message}`;
  const mapped = new MappedIterator(source, { map, recover, onEnd: () => ends++ });
  return { mapped, ends: () => ends };
}

async function read(values: AsyncIterable<string>): Promise<string[]> {
  const found: string[] = [];
  for await (const value of values) found.push(value);
  return found;
}

/** Counts how often it is returned from; fails after its values when there is an error. */
function sourceOf(values: readonly number[], error?: Error) {
  const rest = values.values();
  const source = {
    returned: 0,
    [Symbol.asyncIterator]: () => source,
    async next(): Promise<IteratorResult<number, unknown>> {
      const step = rest.next();
      if (step.done === true && error !== undefined) throw error;
      return step;
    },
    async return(): Promise<IteratorResult<number, unknown>> {
      source.returned++;
      return { done: true, value: undefined };
    },
  };
  return source;
}

t.test("MappedIterator maps every value and ends once", async (t) => {
  const { mapped, ends } = setUp(sourceOf([1, 2]));
  t.same(await read(mapped), ["1", "2"]);
  t.same(await mapped.next(), { done: true, value: undefined });
  await mapped.return();
  t.equal(ends(), 1);
});

t.test("an error of the source is the last value", async (t) => {
  const { mapped, ends } = setUp(sourceOf([1], new Error("gone")));
  t.same(await read(mapped), ["1", "failed: gone"]);
  t.equal(ends(), 1);
});

t.test("an error of map is the last value, and the source is closed", async (t) => {
  const source = sourceOf([1, 2, 3]);
  const { mapped, ends } = setUp(source, (value) => {
    if (value === 2) throw new Error("not encodable");
    return String(value);
  });
  t.same(await read(mapped), ["1", "failed: not encodable"]);
  t.equal(source.returned, 1);
  t.equal(ends(), 1);
});

t.test("return() before the first value ends it and closes the source", async (t) => {
  const source = sourceOf([1]);
  const { mapped, ends } = setUp(source);
  await mapped.return();
  t.same(await read(mapped), []);
  t.equal(source.returned, 1);
  t.equal(ends(), 1);
});

t.test("return() does not wait for a pending value", async (t) => {
  const coming = Promise.withResolvers<IteratorResult<number, undefined>>();
  const { mapped, ends } = setUp({ [Symbol.asyncIterator]: () => ({ next: () => coming.promise }) });
  const pending = mapped.next();
  await mapped.return();
  t.equal(ends(), 1);
  coming.resolve({ done: false, value: 1 });
  t.same(await pending, { done: true, value: undefined }, "what comes afterwards is dropped");
});
