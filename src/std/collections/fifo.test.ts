import t from "tap";
import { Fifo } from "./fifo.ts";

t.test("Fifo returns items in the order in which they were pushed", async (t) => {
  const fifo = new Fifo<number>();
  t.same([fifo.shift(), fifo.last, fifo.length], [undefined, undefined, 0]);
  t.throws(() => fifo.replaceLast(1), RangeError);
  let pushed = 0;
  let shifted = 0;
  for (let round = 0; round < 200; round++) {
    for (let i = 0; i < 3; i++) fifo.push(pushed++);
    for (let i = 0; i < 2; i++) if (fifo.shift() !== shifted++) t.fail("out of order");
    if (fifo.length !== pushed - shifted) t.fail("miscounted");
  }
  fifo.replaceLast(-1);
  t.equal(fifo.last, -1);
  while (fifo.length > 1) if (fifo.shift() !== shifted++) t.fail("out of order");
  t.equal(fifo.shift(), -1);
  fifo.push(7);
  fifo.clear();
  t.equal(fifo.length, 0);
});
