import t from "tap";
import { run } from "./worker-command.ts";

t.test("the command runs in a thread of the API server only", async (t) => {
  const { write } = process.stderr;
  let text = "";
  process.stderr.write = (chunk: string | Uint8Array) => {
    text += String(chunk);
    return true;
  };
  t.teardown(() => Object.assign(process.stderr, { write }));
  t.equal(await run(), 1);
  process.stderr.write = write;
  t.match(text, /in a thread of svc apiserver/);
});
