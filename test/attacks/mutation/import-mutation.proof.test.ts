// test/attacks/mutation/import-mutation.proof.test.ts: removes one protection of importing a task at a time, and shows that an attempt
// against that part then succeeds.
import { IMPORT_MUTANTS } from './import-mutants.ts';
import { IMPORT_FILE_PARTS } from './import-parts-file.ts';
import { IMPORT_WORK_PARTS } from './import-parts-work.ts';
import { tryParts } from './parts.ts';

tryParts({ ...IMPORT_FILE_PARTS, ...IMPORT_WORK_PARTS }, IMPORT_MUTANTS);
