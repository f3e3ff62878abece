import t from "tap";
import { createMemoryStore } from "../../storage/memory.ts";
import { startTestServer } from "../../testing/apiserver/server-fixture.ts";
import { FakeClock } from "../../testing/std/fake-clock.ts";

const PATH = "/api/v1/namespaces/default/configmaps";

for (const end of ["disconnects", "waits longer than the deadline"]) {
  t.test(`DELETE of a collection deletes all objects when the client ${end}`, async (t) => {
    const store = createMemoryStore({ clock: new FakeClock() });
    await using server = await startTestServer({}, { store });
    const controller = new AbortController();
    for (let i = 0; i < 30; i++) {
      const { status } = await server.send(`POST ${PATH}`, { body: { metadata: { name: `m${i}` } } });
      t.equal(status, 201);
    }
    let deleted = 0;
    const remove = store.delete.bind(store);
    store.delete = async (key, expected) => {
      if (++deleted === 5 && end === "disconnects") controller.abort();
      if (deleted === 5 && end !== "disconnects") await server.clock.advance(2000);
      return await remove(key, expected);
    };
    const response = server.send(`DELETE ${PATH}?timeout=1s`, { signal: controller.signal });
    const outcome = await response.then(
      ({ status }) => status,
      () => "no answer",
    );
    if (end !== "disconnects") t.equal(outcome, 504);
    const left = async (): Promise<number> => (await server.send(`GET ${PATH}`)).json.items.length;
    for (let turn = 0; turn < 1000 && (await left()) > 0; turn++) await new Promise((resolve) => setImmediate(resolve));
    t.equal(await left(), 0);
  });
}
