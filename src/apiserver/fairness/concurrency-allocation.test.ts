import t from "tap";
import { seededRandom } from "../../std/crypto/random.ts";
import { type AllocationClass, allocateConcurrency } from "./concurrency-allocation.ts";

const one = (lowerBound: number, target: number, upperBound: number): AllocationClass => ({
  lowerBound,
  target,
  upperBound,
});

t.test("allocateConcurrency() divides seats in proportion to the targets, within the bounds", async (t) => {
  const seats = (total: number, ...classes: AllocationClass[]) => allocateConcurrency(total, classes)?.seats;
  t.same(seats(30, one(0, 10, 100), one(0, 20, 100)), [10, 20]);
  t.same(seats(60, one(0, 10, 100), one(0, 20, 100)), [20, 40]);
  t.same(seats(60, one(0, 10, 15), one(0, 20, 100)), [15, 45], "an upper bound");
  t.same(seats(15, one(10, 10, 100), one(0, 20, 100)), [10, 5], "a lower bound");
  t.same(seats(10, one(4, 4, 9), one(6, 9, 9)), [4, 6], "no more than the lower bounds");
  t.same(seats(18, one(4, 4, 9), one(6, 9, 9)), [9, 9], "all upper bounds");
  t.same(seats(0, one(0, 4, 9)), [0]);
  t.same(seats(6, one(0, 0, 9), one(0, 0, 9)), [3, 3], "without demand");
  t.equal(allocateConcurrency(30, [one(0, 10, 100), one(0, 20, 100)])?.fairFraction, 1);
});

t.test("allocateConcurrency() returns undefined when the bounds do not allow the sum", async (t) => {
  t.equal(allocateConcurrency(5, [one(3, 3, 4), one(3, 3, 4)]), undefined);
  t.equal(allocateConcurrency(9, [one(3, 3, 4), one(3, 3, 4)]), undefined);
  t.equal(allocateConcurrency(9, [one(3, 2, 9)]), undefined, "a target below its lower bound");
});

t.test("allocateConcurrency() gives each class its fair part or a bound", async (t) => {
  const random = seededRandom(7);
  for (let round = 0; round < 200; round++) {
    const classes = Array.from({ length: 1 + Math.floor(random.fraction() * 6) }, () => {
      const lower = Math.floor(random.fraction() * 20);
      return one(lower, lower + random.fraction() * 50, lower + Math.floor(random.fraction() * 60));
    });
    const low = classes.reduce((sum, { lowerBound }) => sum + lowerBound, 0);
    const high = classes.reduce((sum, { upperBound }) => sum + upperBound, 0);
    const total = Math.round(low + random.fraction() * (high - low));
    const allocation = allocateConcurrency(total, classes);
    if (allocation === undefined) {
      t.fail(`round ${round}`);
      continue;
    }
    const { seats, fairFraction } = allocation;
    t.ok(Math.abs(seats.reduce((sum, each) => sum + each, 0) - total) < 1e-6, `the sum of round ${round}`);
    const isFair = seats.every((each, index) => {
      const { lowerBound, upperBound, target } = classes[index]!;
      const fair = Math.max(lowerBound, Math.min(upperBound, fairFraction * Math.max(target, 0.001)));
      return Math.abs(each - fair) < 1e-6;
    });
    t.ok(isFair, `the parts of round ${round}`);
  }
});
