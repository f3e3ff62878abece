import t from "tap";
import { renderCommands, selectCommand } from "./commands.ts";
import { FlagError } from "./flag.ts";

const commands = [
  { command: "list", summary: "show all" },
  { command: "suspend <name>", summary: "suspend one" },
];

const select = (...words: string[]) => selectCommand("svc demo", commands, words);

t.test("selectCommand() finds the command and its arguments, as text", async (t) => {
  t.same(await select("list"), { verb: "list", args: {} });
  t.same(await select("suspend", "007"), { verb: "suspend", args: { name: "007" } });
});

t.test("selectCommand() names what is wrong, and the command that was meant", async (t) => {
  for (const [words, message] of [
    [[], "a command is missing"],
    [["lst"], 'unknown command "lst"; did you mean list?'],
    [["something-else"], 'unknown command "something-else"'],
    [["suspend"], "not enough non-option arguments: got 0, need at least 1"],
    [["suspend", "a", "b"], 'unknown command "b"'],
    [["constructor"], 'unknown command "constructor"'],
  ] as const) {
    await t.rejects(select(...words), { name: FlagError.name, message }, words.join(" "));
  }
});

t.test("renderCommands() lists all commands", async (t) => {
  t.equal(
    await renderCommands("svc demo", commands, 80),
    `Usage: svc demo COMMAND [flags]

Commands:
  svc demo list            show all
  svc demo suspend <name>  suspend one
`,
  );
});
