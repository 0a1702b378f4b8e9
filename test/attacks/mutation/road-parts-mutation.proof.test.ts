// test/attacks/mutation/road-parts-mutation.proof.test.ts: takes each protection out of the parts of the road that an agent's work comes out by, and of what makes a sandbox, one at a
// time, and shows that an attempt against that part then succeeds. The parts are the real ones, from a copy of their source in which one
// piece is replaced. What can only be seen of the whole road is in road-mutation.proof.test.ts.
import { tryParts } from './parts.ts';
import { ROAD_PART_MUTANTS } from './road-mutants.ts';
import { FILE_PARTS } from './road-parts-files.ts';
import { GIT_PARTS } from './road-parts-git.ts';
import { SANDBOX_PARTS } from './sandbox-parts.ts';

tryParts({ ...FILE_PARTS, ...GIT_PARTS, ...SANDBOX_PARTS }, ROAD_PART_MUTANTS);
