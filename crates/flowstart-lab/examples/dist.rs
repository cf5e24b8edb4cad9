use flowstart_lab::plan::*; use flowstart_lab::run::*; use flowstart_lab::spec::*; use flowstart_lab::spec::link::Link; use std::path::Path;
fn main(){ let a:Vec<String>=std::env::args().collect();
 let links=vec![Link::parse("l",&a[1],Path::new(".")).unwrap()]; let transport=transport::Transport::parse("t",a.get(4).map_or("model-quic:profile=gquic",|s|s)).unwrap();
 let schemes=vec![scheme("s",&a[3],&transport.profile.startup).unwrap()]; let av=avoidance("a","cubic",&transport.profile.avoidance).unwrap(); let comp=competitor::Competitor::parse("c","bulk",&transport.profile).unwrap();
 let plan=Plan{links,aqms:vec![aqm("q","taildrop").unwrap()],sizes:vec![Written{text:a[2].clone(),value:a[2].parse().unwrap()}],schemes,avoidance:av,competitors:vec![comp],transport,flows:1,reps:30,seed:1,hint:true};
 for rep in 0..20 { let s=plan.settings()[0]; let w=warm_up(&plan,s,rep); let c=plan.cells()[0]; let mut f=newcomers(&plan,&w,&c,false); let cw=f.world.window(0).unwrap(); let o=&outcomes(&plan,&c,&mut f)[0]; let r=&o.record; let e=r.exit;
 println!("{rep} start {:.1} fct {:.0} hs {:.1} lost {} cuts {} exit {:?} at {:.0} cwnd {:.0} share {:.2} comp cuts {} cwnd {}",o.start.as_secs(), r.completed.unwrap().since(r.request_sent.unwrap()).as_millis(), r.handshake_rtt.unwrap_or_default().as_millis(), r.declared_lost, r.window_cuts, e.map(|e|e.reason), e.map_or(0.0,|e|e.time.since(o.start).as_millis()), e.map_or(0.0,|e|e.cwnd.get() as f64/1350.0), o.share.unwrap(), f.world.record(0).window_cuts, cw.1.get()/1350); }
}
