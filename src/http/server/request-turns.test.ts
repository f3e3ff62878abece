import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { FakeClock } from "../../testing/std/fake-clock.ts";
import { ConnectionTurns, RequestTurns } from "./request-turns.ts";

class Fixture {
  readonly clock = new FakeClock();
  readonly #turns = new RequestTurns(this.clock);
  #started: string[] = [];

  send(name: string, connection: ConnectionTurns, count: number): void {
    for (let index = 0; index < count; index++) {
      this.#turns.take(connection, () => this.#started.push(name));
    }
  }

  /** Those that started since the last call. */
  started(): string {
    const names = this.#started.join("");
    this.#started = [];
    return names;
  }
}

t.test("RequestTurns starts all requests of a connection that is alone", async (t) => {
  const f = new Fixture();
  const [one, other] = [new ConnectionTurns(), new ConnectionTurns()];
  f.send("a", one, 100);
  t.equal(f.started().length, 100);
  f.send("b", other, 1);
  f.send("a", one, 100);
  t.equal(f.started(), `b${"a".repeat(31)}`);
  for (let turn = 0; turn < 60; turn++) await nextTurn();
  t.equal(f.started().length, 69);
  await f.clock.advance(20_000);
  f.send("a", one, 100);
  t.equal(f.started().length, 100, "alone again");
});

t.test(
  "RequestTurns starts few requests in a turn, the first of a connection before those of longer queues",
  async (t) => {
    const f = new Fixture();
    const [flood, second, rare] = [new ConnectionTurns(), new ConnectionTurns(), new ConnectionTurns()];
    f.send("s", second, 1);
    f.send("f", flood, 60);
    f.send("s", second, 20);
    t.equal(f.started(), `s${"f".repeat(32)}`);
    await nextTurn();
    t.equal(f.started(), "fs".repeat(16));
    f.send("r", rare, 1);
    t.equal(f.started(), "");
    await nextTurn();
    t.equal(f.started(), `r${"fs".repeat(4)}${"f".repeat(8)}`);
  },
);

t.test("RequestTurns makes the turns of a crowd shorter", async (t) => {
  const f = new Fixture();
  const [flood, rare] = [new ConnectionTurns(), new ConnectionTurns()];
  f.send("r", rare, 1);
  f.send("f", flood, 120);
  t.equal(f.started(), `r${"f".repeat(32)}`);
  await nextTurn();
  t.equal(f.started(), "ff");
  f.send("r", rare, 2);
  t.equal(f.started(), "r", "the first of a connection starts at once");
  await nextTurn();
  t.equal(f.started(), "rf");
  let started = 0;
  for (let turn = 0; turn < 30; turn++) {
    await nextTurn();
    started += f.started().length;
  }
  t.equal(started, 85);
});
