import t from "tap";
import { elementId, RuleTable } from "./rule-table.ts";
import { removeTable, tablePrefix } from "./table.ts";

const element = (key: string, value = "") => ({ map: "m", key, value });

t.test("takeChanges() orders commands so that verdicts go to chains that exist", async (t) => {
  const table = new RuleTable("ip t");
  table.addElement(element("1", "goto c"));
  table.addChain("c", ["drop"]);
  table.addSet("s", "{ type ipv4_addr; }");
  t.same(table.takeChanges().split("\n"), [
    "add set ip t s { type ipv4_addr; }",
    "add chain ip t c",
    "flush chain ip t c",
    "add rule ip t c drop",
    "add element ip t m { 1 : goto c }",
    "",
  ]);
  t.equal(table.takeChanges(), "");
  table.releaseChain("c");
  table.releaseSet("s");
  table.releaseElement(elementId(element("1")));
  t.same(table.takeChanges().split("\n"), [
    "delete element ip t m { 1 }",
    "flush chain ip t c",
    "delete chain ip t c",
    "delete set ip t s",
    "",
  ]);
});

t.test(
  "what is added twice stays until it was released twice, and what is replaced by the same does not change",
  async (t) => {
    const table = new RuleTable("ip t");
    table.addElement(element("1"));
    table.addElement(element("1"));
    table.releaseElement(elementId(element("1")));
    t.equal(table.takeChanges(), "add element ip t m { 1 }\n");
    table.releaseElement(elementId(element("1")));
    table.addElement(element("1"));
    t.equal(table.takeChanges(), "");
    table.addElement(element("1", "goto a"));
    table.releaseElement(elementId(element("1")));
    t.equal(table.takeChanges(), "delete element ip t m { 1 }\nadd element ip t m { 1 : goto a }\n");
    t.equal(table.takeAll(), "add element ip t m { 1 : goto a }\n");
    table.releaseElement("absent");
    t.equal(table.takeChanges(), "");
  },
);

t.test("removeTable() adds the table first, so that it need not exist", async (t) => {
  const name = { family: "IPv6", table: "t" } as const;
  t.equal(tablePrefix(name), "ip6 t");
  t.equal(removeTable(name), "add table ip6 t\ndelete table ip6 t\n");
});
