import t from "tap";
import { headerValues } from "./message.ts";
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
