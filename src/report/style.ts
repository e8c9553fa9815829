/**
 * The style sheet of a report: light and dark, from phones to wide screens, without external fonts.
 */

const light = `
--paper:#fff;--raised:#f7f8fa;--ink:#1b1f24;--quiet:#59636e;--line:#dfe3e8;--grid:#eceff2;
--good:#1a7f37;--bad:#b3261e;--surprise:230 110 20;--mark:#0550ae;
--c0:#0f62ad;--c1:#c2410c;--c2:#1a7f4b;--c3:#8341b5;--c4:#0e7490;--c5:#b91c6b;--c6:#856404;--c7:#57606a;
--rollout:#0f62ad;--score:#7ab3e0;--prepare:#b9bfc6;--learn:#c2410c;`;

const dark = `
--paper:#0f1318;--raised:#171c23;--ink:#e6eaef;--quiet:#98a2ad;--line:#2b323b;--grid:#20262e;
--good:#56d364;--bad:#ff8b80;--surprise:196 92 16;--mark:#79b8ff;
--c0:#79b8ff;--c1:#ffa368;--c2:#5cd692;--c3:#d2a8ff;--c4:#56d4dd;--c5:#ff9bce;--c6:#e3c64d;--c7:#b1bac4;
--rollout:#5aa2ee;--score:#2f5f92;--prepare:#57606a;--learn:#f08a4b;`;

const colours = Array.from(
  { length: 8 },
  (_, i) =>
    `.c${i} .line{stroke:var(--c${i})}.c${i} .band,.c${i} .dot{fill:var(--c${i})}.swatch.c${i}{background:var(--c${i})}`,
).join("\n");

export const style = `
:root{color-scheme:light dark;${light}}
@media (prefers-color-scheme:dark){:root{${dark}}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;-webkit-text-size-adjust:100%}
main{max-width:1120px;margin:0 auto;padding:48px 24px 96px}
h1{font-size:30px;line-height:1.2;font-weight:650;letter-spacing:-.01em;margin:0 0 8px}
h2{font-size:21px;font-weight:650;margin:64px 0 16px;padding-top:24px;border-top:1px solid var(--line)}
h3{font-size:15px;font-weight:600;color:var(--quiet);margin:36px 0 12px}
h4{font-size:16px;font-weight:600;margin:32px 0 12px}
p{margin:8px 0}
.lead{color:var(--quiet);max-width:70ch}
.hint{color:var(--quiet);font-size:14px;max-width:80ch}
.quiet{color:var(--quiet);font-weight:400}.strong{font-weight:600}
code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.scroll{overflow-x:auto;margin:12px 0}
table{border-collapse:collapse;width:100%;font-size:14px}
th,td{padding:9px 14px;text-align:left;vertical-align:baseline;border-bottom:1px solid var(--line)}
thead th{color:var(--quiet);font-weight:500;white-space:nowrap}
.start{color:var(--quiet);font-size:13px}
tbody th{font-weight:600;min-width:150px}
th:first-child,td:first-child{padding-left:0}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.folders{min-width:180px}.folders code{color:var(--quiet);font-size:12px}
.swatch{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:9px}
nav.key{position:sticky;top:0;z-index:2;background:var(--paper);border-bottom:1px solid var(--line);padding:10px 0;display:flex;flex-wrap:wrap;gap:4px 22px;font-size:14px}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));gap:20px}
.chart{position:relative;margin:0;padding:16px 16px 8px;background:var(--raised);border-radius:10px;min-width:0}
figcaption{font-size:14px;line-height:1.4;margin-bottom:8px}
figcaption span{color:var(--quiet);margin-left:6px}
svg{display:block;width:100%;height:auto;touch-action:pan-y;border-radius:6px}
svg:focus-visible{outline:2px solid var(--mark);outline-offset:2px}
.grid{stroke:var(--line);stroke-width:1}.axis{stroke:var(--quiet);stroke-width:1}
.tick{fill:var(--quiet);font:12px system-ui,sans-serif;font-variant-numeric:tabular-nums}
.line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}
.band{opacity:.16;stroke:none}
.cursor{stroke:var(--quiet);stroke-width:1;stroke-dasharray:3 3}
${colours}
.readout{position:absolute;bottom:calc(100% - 46px);z-index:3;pointer-events:none;background:var(--paper);border:1px solid var(--line);border-radius:8px;padding:8px 12px;font-size:13px;line-height:1.5;box-shadow:0 4px 16px rgb(0 0 0/.12);max-width:75%;font-variant-numeric:tabular-nums}
.readout .value{font-weight:600;margin-left:8px;white-space:nowrap}
.phase{display:inline-block;height:14px}
.phase.key{width:11px;height:11px;border-radius:3px;margin-right:7px}
.phase.rollout{background:var(--rollout)}.phase.score{background:var(--score)}.phase.prepare{background:var(--prepare)}.phase.learn{background:var(--learn)}
td.bars{width:34%;min-width:140px}td.bars div{display:flex;border-radius:3px;overflow:hidden}
.badge{display:inline-block;font-size:12px;font-weight:600;line-height:1;padding:4px 8px;border-radius:99px;border:1px solid currentColor}
.badge.solved{color:var(--good)}.badge.failed{color:var(--bad)}
.episode{background:var(--raised);border-radius:10px;margin:10px 0;padding:0 18px}
.episode[open]{padding-bottom:14px}
.episode summary{cursor:pointer;padding:13px 0;margin-left:16px}
.episode .goal{font-weight:600;margin:0 8px}
.episode summary .quiet{font-size:14px}
.sees{white-space:pre-wrap;color:var(--quiet)}
.steps{padding-left:28px;margin:12px 0}
.steps li{margin:12px 0;padding-left:4px}.steps li::marker{color:var(--quiet);font-size:13px}
.action code{font-size:14px;font-weight:600}
.action .badge{margin-left:6px}
.response{color:var(--quiet);font-size:14px;border-left:2px solid var(--line);padding-left:10px;margin:4px 0;white-space:pre-wrap;overflow-wrap:anywhere}
.observation{white-space:pre-wrap;overflow-wrap:anywhere}
.prediction{background:var(--raised);border-radius:10px;padding:12px 18px;margin:12px 0}
.prediction .quiet{font-size:14px;margin-left:6px}
.row{display:grid;grid-template-columns:92px 1fr auto;gap:4px 14px;align-items:baseline;padding:5px 0}
.weights{color:var(--quiet);font-size:13px}.row .number{font-size:13px}
.tokens{font:14px/2 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
.token{white-space:pre-wrap;border-radius:3px;padding:2px 1px;margin-right:1px;background:rgb(var(--surprise)/calc(var(--q)*.72))}
.token.kept{box-shadow:inset 0 -2px 0 var(--mark)}
.legend{font-size:14px;color:var(--quiet);line-height:2}.legend .token{color:var(--ink);padding:2px 6px;margin-right:4px}
@media (max-width:640px){main{padding:28px 16px 64px}h1{font-size:25px}h2{margin-top:44px}.chart{padding:14px 10px 6px}
.row{grid-template-columns:1fr auto}.row .tokens{grid-column:1/-1;grid-row:2}.tick{font-size:14px}th,td{padding:8px 10px}tbody th{min-width:110px}.episode,.prediction{padding-left:14px;padding-right:14px}}
@media print{nav.key{position:static}.chart,.episode,.prediction{break-inside:avoid}}
`;
