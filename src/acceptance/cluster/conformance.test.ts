/** A sample of the conformance behaviours; `make conformance` shows all of them. */
import { join } from "node:path";
import t from "tap";
import { command, findMissingRequirement, root } from "./cluster.ts";

const RUN_MS_MAX = 120_000;
const missing = findMissingRequirement();

t.setTimeout(RUN_MS_MAX);

if (missing !== undefined) console.error(`Skipped: ${missing}.`);
else {
  t.test("a sample of the conformance behaviours is shown by svc up", async (t) => {
    const program = join(root, "src/acceptance/conformance/run.ts");
    const { code, stdout, stderr } = await command(process.execPath, [program, "--sample"], { timeoutMs: RUN_MS_MAX });
    t.equal(code, 0, `${stdout}${stderr}`);
    t.match(stdout, /^\d\d shown, 0 not shown$/m);
  });
}
