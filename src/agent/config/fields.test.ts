import t from "tap";
import { agentFlags } from "../flags.ts";
import { configFields } from "./fields.ts";

t.test("the schema of the configuration file has the field of each flag", async (t) => {
  const found = new Set(configFields.flatMap(({ flag }) => (flag === undefined ? [] : [flag.name])));
  for (const [name, { config }] of Object.entries(agentFlags)) {
    if (config !== undefined) t.ok(found.has(name), `--${name}: ${config}`);
  }
});
