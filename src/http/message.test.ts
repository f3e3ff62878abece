import t from "tap";
import { headerText, headerTexts, headerValues } from "./message.ts";
import { makeRequest } from "./request.ts";

t.test("headerValues() distinguishes repeated headers from commas within one", async (t) => {
  const headers = { "x-group": "a, b, c", "x-user": "jo" };
  const rawHeaders = ["X-Group", "a, b", "x-user", "jo", "x-GROUP", "c"];
  const sent = { ...makeRequest({ path: "/", headers }), rawHeaders };
  t.same(headerValues(sent, "x-group"), ["a, b", "c"]);
  t.same(headerValues(sent, "x-user"), ["jo"]);
  t.same(headerValues(sent, "x-other"), []);
  t.same(headerValues(makeRequest({ path: "/", headers }), "x-group"), ["a", "b", "c"]);
});

t.test("headerText() reads the bytes of a header as UTF-8, and leaves those of this process", async (t) => {
  const encode = (text: string): string => Buffer.from(text).toString("latin1");
  const name = "jos\u00e9 \u65e5\u672c";
  const headers = { "x-user": encode(name), "x-group": `a, ${encode(name)}`, "x-plain": "jo" };
  const rawHeaders = Object.entries(headers).flat();
  const sent = { ...makeRequest({ path: "/", headers }), rawHeaders };
  t.equal(headerText(sent, "x-user"), name);
  t.equal(headerText(sent, "x-plain"), "jo");
  t.equal(headerText(sent, "x-other"), undefined);
  t.same(headerTexts(sent, "x-group"), [`a, ${name}`]);
  t.equal(headerText(makeRequest({ path: "/", headers: { "x-user": name } }), "x-user"), name);
  const broken = { ...makeRequest({ path: "/", headers: { "x-user": "\u00e9" } }), rawHeaders: ["x-user", "\u00e9"] };
  t.equal(headerText(broken, "x-user"), "\ufffd");
});
