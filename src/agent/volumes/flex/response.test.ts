import t from "tap";
import { parseResponse } from "./response.ts";

t.test("parseResponse() reads members of the right type and ignores others", async (t) => {
  const empty = { status: "", message: "", device: "", volumeName: "", isAttached: false, capabilities: {} };
  t.same(parseResponse("{}"), empty);
  t.same(parseResponse('{"status":"Success","device":5,"attached":true,"capabilities":{"attach":false},"more":1}'), {
    ...empty,
    status: "Success",
    isAttached: true,
    capabilities: { attach: false },
  });
  for (const output of ["", "[]", "null", "no JSON"]) t.equal(parseResponse(output), undefined, output);
});
