// SPDX-License-Identifier: Apache-2.0

// The style sheet of the status page.
#ifndef CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_STYLE_H_
#define CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_STYLE_H_

namespace crout {

// A light or dark style, as the reader's system requests, without external fonts or images.
// Contains no character that is markup in XML.
//
// p0 to p8 are the phases in the order of JobPhase. Their colours follow the palette of Okabe and
// Ito, which is distinguishable with any colour vision. h0 to h7 are the levels of the heat map.
// Their colours follow the viridis scale, which is also readable in grey.
inline constexpr char kStatusStyle[] = R"(
:root { color-scheme: light dark;
  --page: #f4f5f7; --card: #ffffff; --text: #1c2128; --dim: #5d6673; --line: #dde1e6;
  --fill: #2f6fb5; --track: #e6e9ed; --good: #1a7f37; --bad: #c62828;
  --heat: 47, 111, 181; }
@media (prefers-color-scheme: dark) { :root {
  --page: #14171c; --card: #1d2127; --text: #e4e7eb; --dim: #98a1ad; --line: #333a43;
  --fill: #5b9bd8; --track: #2d333b; --good: #4cc26a; --bad: #ff7b72;
  --heat: 91, 155, 216; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 76rem; padding: 1rem; background: var(--page);
  color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .3rem 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 0 0 .6rem; }
h3 { font-size: .95rem; margin: .2rem 0; }
a { color: var(--fill); }
p { margin: .3rem 0; }
nav { margin-left: auto; display: flex; gap: 1rem; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .9rem 1rem; margin: 1rem 0 0; min-width: 0; }
.dim { color: var(--dim); }
.note { color: var(--dim); font-size: .85rem; }
.state { font-weight: 600; }
.good { color: var(--good); }
.bad { color: var(--bad); }
.tiles { display: grid; gap: 1rem; margin-top: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); }
.tiles section { margin: 0; padding: .6rem 1rem; }
.tiles b { display: block; font-size: 1.45rem; font-weight: 600; line-height: 1.3; }
.columns { display: grid; gap: 0 1rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); }
.device + .device { border-top: 1px solid var(--line); margin-top: .8rem; padding-top: .6rem; }
.meter { display: grid; grid-template-columns: 6.5rem 1fr; gap: 0 .8rem; align-items: center;
  margin: .35rem 0; }
.meter .note { grid-column: 2; }
.track { height: .6rem; border-radius: .3rem; background: var(--track); overflow: hidden;
  display: flex; }
.track i { display: block; height: 100%; background: var(--fill); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; font-size: .8rem; color: var(--dim); }
th, td { padding: .28rem .7rem .28rem 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
tr:last-child td { border-bottom: 0; }
th.number, td.number { text-align: right; }
td.share, th.share { text-align: center; padding: .28rem .3rem; min-width: 3.6rem; }
td.phases { min-width: 11rem; width: 30%; }
.legend { display: flex; flex-wrap: wrap; gap: .2rem .9rem; font-size: .85rem;
  color: var(--dim); }
.legend span { white-space: nowrap; }
.legend i { display: inline-block; width: .75rem; height: .75rem; border-radius: .15rem;
  margin-right: .35rem; vertical-align: -.08rem; }
.track .p0, .legend .p0 { background: #56b4e9; }
.track .p1, .legend .p1 { background: #8a8f98; }
.track .p2, .legend .p2 { background: #e69f00; }
.track .p3, .legend .p3 { background: #0072b2; }
.track .p4, .legend .p4 { background: #009e73; }
.track .p5, .legend .p5 { background: #e6d933; }
.track .p6, .legend .p6 { background: #d55e00; }
.track .p7, .legend .p7 { background: #cc79a7; }
.track .p8, .legend .p8 { background: #7a5195; }
.run { display: flex; flex-wrap: wrap; gap: .4rem 1.5rem; }
.run div { flex: 1 1 16rem; }
.run .legend { flex-direction: column; margin-top: .8rem; }
.heat { display: block; width: min(100%, 22rem); align-self: start; margin: .3rem 0; border: 1px solid var(--line);
  shape-rendering: crispEdges; }
.h0 { fill: #440154; background: #440154; }
.h1 { fill: #46327e; background: #46327e; }
.h2 { fill: #365c8d; background: #365c8d; }
.h3 { fill: #277f8e; background: #277f8e; }
.h4 { fill: #1fa187; background: #1fa187; }
.h5 { fill: #4ac16d; background: #4ac16d; }
.h6 { fill: #a0da39; background: #a0da39; }
.h7 { fill: #fde725; background: #fde725; }
)";

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_STATUS_STATUS_STYLE_H_
