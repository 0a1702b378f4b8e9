// test/attacks/mutation/pipeline-parts-mutation.proof.test.ts: removes one protection of the parts of the pipeline and of sandbox setup at a
// time, and shows that an attempt against that part then succeeds. The parts are the real ones, from a copy of their source with one
// replaced piece. pipeline-mutation.proof.test.ts covers the whole pipeline.
import { tryParts } from './parts.ts';
import { PIPELINE_PART_MUTANTS } from './pipeline-mutants.ts';
import { FILE_PARTS } from './pipeline-parts-files.ts';
import { GIT_PARTS } from './pipeline-parts-git.ts';
import { SANDBOX_PARTS } from './sandbox-parts.ts';

tryParts({ ...FILE_PARTS, ...GIT_PARTS, ...SANDBOX_PARTS }, PIPELINE_PART_MUTANTS);
