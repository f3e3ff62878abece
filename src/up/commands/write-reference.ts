/** Run by `make docs`: writes `docs/flags-*.md` and `docs/doctor.md` from the tables. */
import { mkdirSync, writeFileSync } from "node:fs";
import { renderFindings } from "../../agent/doctor/report.ts";
import { renderReference } from "../../flags/reference.ts";
import { programs } from "./programs.ts";

const docs = new URL("../../../docs/", import.meta.url);
mkdirSync(docs, { recursive: true });
for (const page of programs) writeFileSync(new URL(`flags-${page.word}.md`, docs), renderReference(page));
writeFileSync(new URL("doctor.md", docs), renderFindings());
