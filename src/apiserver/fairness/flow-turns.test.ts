import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { FlowTurn, FlowTurns } from "./flow-turns.ts";

class Fixture {
  readonly turns = new FlowTurns();
  readonly #proceeded: string[] = [];

  send(name: string, flow: FlowTurn, count: number, nowMs = 1000, seats = 1): void {
    for (let index = 0; index < count; index++) {
      const turn = this.turns.take(flow, nowMs, seats);
      if (turn === undefined) this.#proceeded.push(name);
      else void turn.then(() => this.#proceeded.push(name));
    }
  }

  /** Counts those that proceeded since the last call. */
  proceeded(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const name of this.#proceeded.splice(0)) counts[name] = (counts[name] ?? 0) + 1;
    return counts;
  }
}

t.test("FlowTurns lets a few requests of each flow proceed in a turn of the event loop", async (t) => {
  const f = new Fixture();
  const [many, few] = [new FlowTurn(), new FlowTurn()];
  f.send("few", few, 1);
  f.send("many", many, 50);
  t.same(f.proceeded(), { few: 1, many: 32 });
  f.send("few", few, 1);
  t.same(f.proceeded(), { few: 1 }, "a flow with few requests does not wait");
  f.send("few", few, 33);
  t.same(f.proceeded(), { few: 31 });
  await nextTurn();
  t.same(f.proceeded(), { few: 2, many: 18 });
  f.send("many", many, 1, 1001);
  t.same(f.proceeded(), { many: 1 }, "a later request proceeds at once");
});

t.test("FlowTurns makes the turns of a crowd shorter, and a list takes several turns", async (t) => {
  const f = new Fixture();
  const [many, few] = [new FlowTurn(), new FlowTurn()];
  f.send("few", few, 1);
  f.send("many", many, 100);
  t.same(f.proceeded(), { few: 1, many: 32 });
  await nextTurn();
  t.same(f.proceeded(), { many: 2 }, "of 68");
  await nextTurn();
  t.same(f.proceeded(), { many: 2 }, "of 66");
  await nextTurn();
  t.same(f.proceeded(), { many: 32 }, "of 64");
  f.send("lists", few, 3, 1001, 5);
  t.same(f.proceeded(), { lists: 1 });
  for (const started of [{ many: 32 }, {}, {}, { lists: 1 }]) {
    await nextTurn();
    t.same(f.proceeded(), started);
  }
});

t.test("FlowTurns counts requests that wait for seats to a crowd", async (t) => {
  const f = new Fixture();
  const [many, few] = [new FlowTurn(), new FlowTurn()];
  f.send("few", few, 1);
  many.queued = 100;
  f.send("many", many, 40);
  t.same(f.proceeded(), { few: 1, many: 32 });
  await nextTurn();
  t.same(f.proceeded(), { many: 2 });
  many.queued = 0;
  await nextTurn();
  t.same(f.proceeded(), { many: 6 });
});

t.test("FlowTurns does not limit a flow that is alone", async (t) => {
  const f = new Fixture();
  const [one, exempt] = [new FlowTurn(), new FlowTurn()];
  f.send("one", one, 100);
  t.same(f.proceeded(), { one: 100 });
  f.turns.pass(exempt, 1001);
  f.send("one", one, 100, 1001);
  t.same(f.proceeded(), { one: 32 });
  for (let turn = 0; turn < 30; turn++) await nextTurn();
  t.same(f.proceeded(), { one: 68 });
  f.send("one", one, 100, 20_000);
  t.same(f.proceeded(), { one: 100 }, "alone again");
});
