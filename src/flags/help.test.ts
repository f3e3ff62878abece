import t from "tap";
import { flag, section } from "./flag.ts";
import { FeatureGates } from "./gates.ts";
import { renderHelp, wrap } from "./help.ts";
import { duration } from "./types/duration.ts";
import { int32 } from "./types/number.ts";
import { bool, oneOf, version } from "./types/text.ts";

const table = {
  ...section("Serving", {
    port: flag(int32(), 80, "Port.", { config: "port" }),
    mode: flag(oneOf("fast", "slow"), "slow", "Mode.", { gate: "Modes", inert: "there is one mode" }),
  }),
  ...section("Other", {
    wait: flag(duration(), 0, "Wait.", { defaultNote: "twice the period", deprecated: "stop waiting." }),
    help: flag(bool, false, "Help.", { short: "h" }),
    version: flag(version, "", "Version."),
  }),
};

t.test("renderHelp() groups flags by section and shows type, default and conditions", async (t) => {
  const gates = new FeatureGates({ Modes: { stage: "ALPHA", default: false } });
  t.equal(
    renderHelp(table, { name: "svc demo", summary: "A demonstration.", columns: 80, gates }),
    `A demonstration.

Usage:
  svc demo [flags]

Serving:

      --port int32
          Port. In the file: port. (default 80)
      --mode string
          Mode. One of fast, slow. Needs feature gate Modes. No effect: there is
          one mode; only the default is accepted. (default slow)

Other:

      --wait duration
          Wait. DEPRECATED: stop waiting. (default twice the period)
  -h, --help
          Help.
      --version version[=true]
          Version. One of true, raw.

Feature gates:

  Modes=true|false (ALPHA - default=false)
`,
  );
});

t.test("wrap() breaks at words and leaves long ones alone", async (t) => {
  t.same(wrap("one two three", 9, 2), ["  one two", "  three"]);
  t.same(wrap(`a ${"b".repeat(20)} c`, 10, 0), ["a", "b".repeat(20), "c"]);
  t.same(wrap("", 10, 0), []);
});
