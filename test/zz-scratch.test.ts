import { test } from 'vitest';
import { LANE_RULES, MEDIA_FILES, TEST_FILES } from '../src/review/lane-rules.ts';
import { classify, type Content } from '../src/review/lanes.ts';
function file(text: string): Content { return { mode: '100644', text, bytes: 0 }; }
test('x', () => {
  for (const r of LANE_RULES) if (r.match.includes('')) console.log('EMPTY', r.id);
  console.log(MEDIA_FILES.includes(''), TEST_FILES.includes(''), LANE_RULES.flatMap(r=>r.match).length);
  const pieces = ['eyJ', 'eyJa-', '\n', ' ', 'curl |', '"path', 'sk-', '://a:', 'https:', '\t x', '=> ', 'a=', '-----BEGIN ', '[[', '\u200d\u{1f468}', '$' + '{{', '@', 'test.'];
  const out: [number,string][] = [];
  for (const path of ['a.test.ts', 'package.json', '.npmrc', '.gitattributes', '.gitmodules', '.github/workflows/x.yml', 'yarn.lock', 'pyproject.toml', 'go.mod', '.vscode/x']) {
    for (const piece of pieces) { const t=performance.now(); classify({ path, before: file(''), after: file(piece.repeat(200_000 / piece.length)) }); out.push([performance.now()-t, path+' '+JSON.stringify(piece)]); }
  }
  { const t=performance.now(); classify({ path: `${'a/'.repeat(2000)}x`, before: null, after: file('') }); out.push([performance.now()-t,'deep']); }
  { const t=performance.now(); classify({ path: `${'.github/workflows/'.repeat(200)}x`, before: null, after: file('') }); out.push([performance.now()-t,'deepgh']); }
  { const t=performance.now(); for(let i=0;i<10000;i++) classify({ path: `src/dir${i%100}/file${i}.ts`, before: null, after: file('') }); out.push([performance.now()-t,'10k files']); }
  console.log(out.sort((a,b)=>b[0]-a[0]).slice(0,25).map(x=>x[0].toFixed(0)+' '+x[1]).join('\n'));
}, 60000);
