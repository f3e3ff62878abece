/** Run by `make docs`: writes docs/conformance.md. */
import { writeFileSync } from "node:fs";
import { readConformanceList, renderConformance } from "./conformance-list.ts";

writeFileSync(new URL("../../../docs/conformance.md", import.meta.url), renderConformance(readConformanceList()));
