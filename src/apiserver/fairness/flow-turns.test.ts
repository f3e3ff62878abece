import { setImmediate as nextTurn } from "node:timers/promises";
import t from "tap";
import { FlowTurn, FlowTurns } from "./flow-turns.ts";

t.test("FlowTurns lets a few requests of each flow proceed in a turn of the event loop", async (t) => {
  const turns = new FlowTurns();
  const [many, few] = [new FlowTurn(), new FlowTurn()];
  const proceeded: string[] = [];
  const send = (name: string, flow: FlowTurn): void => {
    const turn = turns.take(flow, 1000);
    if (turn === undefined) proceeded.push(name);
    else void turn.then(() => proceeded.push(name));
  };
  for (let index = 0; index < 7; index++) send("many", many);
  t.same(proceeded, ["many", "many"]);
  send("few", few);
  t.same(proceeded.splice(0), ["many", "many", "few"], "a flow that was idle does not wait");
  for (let index = 0; index < 3; index++) send("few", few);
  await nextTurn();
  t.same(proceeded.splice(0).sort(), ["few", "few", "few", "many", "many"]);
  await nextTurn();
  t.same(proceeded.splice(0), ["many", "many"]);
  await nextTurn();
  t.same(proceeded.splice(0), ["many"]);
  t.equal(turns.take(many, 1001), undefined, "a later request proceeds at once");
});
